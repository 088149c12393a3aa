"""Play of a multi-armed bandit in batches: an arm's mean is released when its batch is full.

Every arm has an open batch of its own rewards. When the batch is full, its sum gets one Laplace
number and is *released*: it takes the place of what was released of the arm before, or is added to
it. Arms are chosen from released numbers alone. A new arm is chosen in every round, or only when a
batch is full. Rules without noise have batches of one reward.

Letters: k arms, n the rewards in an arm's released sum, t the number of the current round, x the
released mean on the scale of [0, 1], a the rule's exploration. What is largest is chosen:

    OPTIMISTIC   x + sqrt(a ln(f t) / 2n) + a ln t / (epsilon n)
    SHIFTED_KL   the largest y with kl(clip(x + a ln t / (epsilon n)), y) <= a ln t / n
    DIVERGENCE   the largest y with d(clip(x), y) <= a ln t / n
    MINIMUM      -(n d(clip(x), best) + ln n), with best the largest of all clip(x)
    THOMPSON     a draw of Beta(n m + 1, n (1 - m) + 1), m = clip(x + a ln t / (epsilon n))

with kl and d of `_divergence`. A *board* is all that such a learner remembers, one row for each
arm: pulls, rewards in the open batch, the batch's size, its raw sum, the released sum, and n.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _divergence as divergence
from discreet.kernels import _pulls as upper
from discreet.kernels import _random as random
from discreet.kernels._binomial import binomial
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

OPTIMISTIC, SHIFTED_KL, DIVERGENCE, MINIMUM, THOMPSON = 0, 1, 2, 3, 4
PULLS, HELD, SIZE, OPEN, RELEASED, WEIGHT = 0, 1, 2, 3, 4, 5
_COLUMNS = 6


class Rule(NamedTuple):
    """Which batches, which noise, which index."""

    chooses: int  # OPTIMISTIC, ..., THOMPSON
    epsilon: float  # infinite for no noise
    noise_scale: float  # of the Laplace number on a batch's sum; 0 for no noise
    exploration: float  # a
    log_factor: float  # f
    first: int  # rewards in an arm's first batch
    growth: float  # an arm's pulls after a batch over those before; 1 for batches of one reward
    doubling: bool  # instead: each batch has twice the size of the one before
    forgetting: bool  # whether a released sum takes the place of the one before
    staying: bool  # whether the chosen arm is pulled until its batch is full


@kernel
def empty_board(n_arms: int, first: int) -> F64:
    """Nothing pulled; every arm has an open batch of ``first`` rewards."""
    board = np.zeros((n_arms, _COLUMNS))
    board[:, SIZE] = first
    return board


@kernel
def finish(board: F64, rule: Rule, arm: int, normals: F64) -> None:
    """Release the sum of a full batch and open the arm's next one.

    ``normals`` holds the four standard normals of one Laplace number; none for rules without noise.
    """
    released = board[arm, OPEN]
    if rule.noise_scale > 0.0:
        released += upper.noise(normals, 0, rule.noise_scale)
    size, pulls = board[arm, SIZE], board[arm, PULLS]
    board[arm, RELEASED] = released if rule.forgetting else board[arm, RELEASED] + released
    board[arm, WEIGHT] = size if rule.forgetting else board[arm, WEIGHT] + size
    board[arm, HELD] = 0.0
    board[arm, OPEN] = 0.0
    if rule.doubling:
        board[arm, SIZE] = 2.0 * size
    else:
        board[arm, SIZE] = max(1.0, math.ceil(rule.growth * pulls) - pulls)


@kernel
def learn(board: F64, rule: Rule, arm: int, reward: float, normals: F64) -> bool:
    """Add a reward to its arm's open batch, and `finish` the batch if it is full; whether it is."""
    board[arm, PULLS] += 1.0
    board[arm, HELD] += 1.0
    board[arm, OPEN] += reward
    if board[arm, HELD] < board[arm, SIZE]:
        return False
    finish(board, rule, arm, normals)
    return True


@kernel
def mean(board: F64, arm: int) -> float:
    """The released mean of rewards in [-1, 1], on the scale of [0, 1]; not clipped."""
    return 0.5 + 0.5 * board[arm, RELEASED] / board[arm, WEIGHT]  # type: ignore[no-any-return]  # an entry of an array


@kernel
def fill_dofs(board: F64, rule: Rule, turn: int, dofs: F64) -> None:
    """For THOMPSON, two degrees of freedom for each arm: a Beta draw is made of two chi-squares.

    With X and Y chi-square of 2p and 2q degrees of freedom, X / (X + Y) has the law Beta(p, q).
    An arm without a release has p = q = 1, and its draw is not looked at.
    """
    log = math.log(turn)
    for arm in range(board.shape[0]):
        n = board[arm, WEIGHT]
        shifted = 0.0
        if n > 0.0:
            shift = rule.exploration * log / (rule.epsilon * n)
            shifted = divergence.clip(mean(board, arm) + shift)
        dofs[2 * arm] = 2.0 * (n * shifted + 1.0)
        dofs[2 * arm + 1] = 2.0 * (n * (1.0 - shifted) + 1.0)


@kernel
def choose(board: F64, rule: Rule, turn: int, draws: F64) -> int:
    """The arm for round ``turn``, from 1: the first that has no release yet, or the best index.

    ``draws`` holds the chi-squares that `fill_dofs` asks for; it is not looked at for other rules.
    """
    n_arms = board.shape[0]
    best = -math.inf
    for arm in range(n_arms):
        if board[arm, WEIGHT] == 0.0:
            return arm
        best = max(best, mean(board, arm))
    best = divergence.clip(best)
    log = math.log(turn)
    top = -math.inf
    winner = 0
    for arm in range(n_arms):
        if rule.chooses == THOMPSON:
            index = draws[2 * arm] / (draws[2 * arm] + draws[2 * arm + 1])
        else:
            index = _index(rule, mean(board, arm), board[arm, WEIGHT], log, best, top)
        if index > top:
            top = index
            winner = arm
    return winner


@kernel
def _index(rule: Rule, x: float, n: float, log: float, best: float, top: float) -> float:
    """The index of an arm with mean x of n rewards, where ``log`` is ln t.

    ``top`` is the largest index so far. For DIVERGENCE, an index that is not above it is not
    computed, and comes out as minus infinity: to compare takes one divergence, not a search.
    """
    width = rule.exploration * log / n
    if rule.chooses == OPTIMISTIC:
        sampling = 0.5 * rule.exploration * (log + math.log(rule.log_factor)) / n
        return x + math.sqrt(sampling) + width / rule.epsilon
    if rule.chooses == SHIFTED_KL:
        return divergence.kl_upper(divergence.clip(x + width / rule.epsilon), width)
    x = divergence.clip(x)
    if rule.chooses == DIVERGENCE:
        if divergence.private_divergence(x, top, rule.epsilon) >= width:
            return -math.inf
        return divergence.private_upper(x, width, rule.epsilon)
    return -(n * divergence.private_divergence(x, best, rule.epsilon) + math.log(n))


@kernel
def _open(board: F64, arm: int, mean_reward: float, reward_state: U64) -> None:
    """Draw the sum of a whole batch of rewards of plus or minus one at once."""
    size = int(board[arm, SIZE])
    wins = binomial(reward_state, size, 0.5 * (1.0 + mean_reward))
    board[arm, OPEN] = 2.0 * wins - size


@kernel
def play(
    means: F64, rule: Rule, reward_state: U64, noise_state: U64, checkpoints: I64, pulls: I64
) -> None:
    """Rewards of plus or minus one up to the last checkpoint; the pulls of each arm at each.

    Nothing looks at a batch before it is full, so its sum is drawn when it is opened, as one
    binomial number. Where the chosen arm stays, whole batches are played at once.

    Shapes: means (k,), checkpoints (C,), pulls (C, k).
    """
    n_arms = means.size
    board = empty_board(n_arms, rule.first)
    normals = np.empty(upper.PER_DRAW)
    draws, dofs = np.empty(2 * n_arms), np.empty(2 * n_arms)
    turn, recorded = 0, 0
    while True:
        if rule.chooses == THOMPSON:
            fill_dofs(board, rule, turn + 1, dofs)
            random.fill_chi_squares(noise_state, dofs, draws)
        arm = choose(board, rule, turn + 1, draws)
        if board[arm, HELD] == 0.0:
            _open(board, arm, means[arm], reward_state)
        rounds = int(board[arm, SIZE]) if rule.staying else 1
        while recorded < checkpoints.size and checkpoints[recorded] <= turn + rounds:
            for each in range(n_arms):
                pulls[recorded, each] = int(board[each, PULLS])
            pulls[recorded, arm] += checkpoints[recorded] - turn
            recorded += 1
        if recorded == checkpoints.size:
            return
        turn += rounds
        board[arm, PULLS] += rounds
        board[arm, HELD] += rounds
        if board[arm, HELD] == board[arm, SIZE]:
            if rule.noise_scale > 0.0:
                random.fill_normals(noise_state, normals)
            finish(board, rule, arm, normals)
