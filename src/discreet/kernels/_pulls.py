"""Upper-confidence play of a multi-armed bandit, one pull at a time or many.

Every arm has a binary tree of its own over its own rewards: the tree of `tree` in its covering
form, for numbers instead of packed rows. Without levels the tree is the exact sum and the play is
UCB1. The index of an arm after N pulls of it, and t in all, is

    (noisy sum + width) / N + sqrt(8 ln t / N),

where the width bounds the noise of as many nodes as N has ones in binary. Only the pulled arm's
first term and 1/sqrt(N) change; so a choice costs one logarithm and one pass over the arms, with
no approximation.

A *board* is all that such a learner remembers, one row for each arm: the first term, 1/sqrt(N),
N, then the m nodes of its tree and its m + 1 totals. Shapes, with k arms: board (k, 2m + 4),
widths (64,). It is one array because a compiled call with many arrays is slow.
"""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _arms as arms
from discreet.kernels import _random as random
from discreet.kernels import _tree as tree
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

PULLS = 2  # the column of N
PER_DRAW = 4  # normals in one Laplace number
GRID = 2.0**-20  # rewards and noise are whole multiples of it, so no sum of them is ever rounded
STOCK = 2048  # normals drawn at a time; more than any one step can need

_BASE, _ROOT, _TREE = 0, 1, 3
_STRETCH = 64  # pulls after which the other arms' indices are looked at again


@kernel
def empty_board(n_arms: int, levels: int) -> F64:
    """Nothing pulled: the index of every arm is infinite. The trees still need `begin`."""
    board = np.zeros((n_arms, _TREE + 2 * levels + 1))
    for arm in range(n_arms):
        board[arm, _BASE] = math.inf
    return board


@kernel
def laplace(normals: F64, at: int) -> float:
    """A standard Laplace number from the four standard normals that start at ``at``.

    The product of two has characteristic function (1 + t^2)^(-1/2); the sum of two such products
    has 1/(1 + t^2), which is Laplace's.
    """
    return normals[at] * normals[at + 1] + normals[at + 2] * normals[at + 3]  # type: ignore[no-any-return]  # an entry of an array


@kernel
def noise(normals: F64, at: int, scale: float) -> float:
    """A Laplace number of this scale, rounded to a multiple of `GRID`.

    Sums of rewards are multiples of it as well, so to round the noise is to round the noisy sum:
    what is shown is a function of that sum. A sum of floating-point numbers that are not on a grid
    would be rounded by an amount that tells of the reward (Mironov 2012).
    """
    return GRID * math.floor(scale * laplace(normals, at) / GRID + 0.5)


@kernel
def ones(number: int) -> int:
    """How many ones a number has in binary."""
    x = number - ((number >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 0x7F


@kernel
def growth(pulls: int) -> float:
    """sqrt(8 ln t), what 1/sqrt(N) is multiplied by."""
    return math.sqrt(8.0 * math.log(pulls)) if pulls > 0 else 0.0


@kernel
def choose(board: F64, factor: float) -> int:
    """The arm with the largest index; the first if several have it. ``factor`` is the growth."""
    top = -math.inf
    winner = 0
    for arm in range(board.shape[0]):
        index = board[arm, _BASE] + factor * board[arm, _ROOT]
        better = index > top  # chosen without a branch, which could not be predicted
        top = index if better else top
        winner = arm if better else winner
    return winner


@kernel
def _best_other(board: F64, factor: float, winner: int) -> float:
    """The largest index of any other arm."""
    top = -math.inf
    for arm in range(board.shape[0]):
        index = board[arm, _BASE] + factor * board[arm, _ROOT]
        index = -math.inf if arm == winner else index
        top = max(top, index)
    return top


@kernel
def begin(board: F64, levels: int, scale: float, normals: F64, at: int) -> int:
    """Give every level of every tree its first noise; where the unused normals start."""
    for arm in range(board.shape[0]):
        for level in range(levels):
            board[arm, _TREE + level] = noise(normals, at, scale)
            at += PER_DRAW
    return at


@kernel
def learn(
    board: F64,
    widths: F64,
    arm: int,
    reward: float,
    last: int,
    scale: float,
    normals: F64,
    at: int,
) -> int:
    """Add a reward to its arm's tree, as `tree.step`, and bring that arm's index up to date.

    Levels that start over take their noise from ``normals``, lowest first, four numbers each;
    where the unused ones start. ``last`` is the last reward that can come: a node that would be
    finished after it never shows, and takes none.
    """
    levels = (board.shape[1] - _TREE) // 2
    totals = _TREE + levels
    rows = int(board[arm, PULLS])
    for level in range(levels):
        block = rows >> level
        takes = (block & 1 == 0) & ((block + 1) << level <= last)
        board[arm, _TREE + level] += reward if takes else 0.0
    starting = tree.carry(rows + 1, levels)
    if levels == 0:
        board[arm, totals] += reward
    elif starting < levels:
        above = board[arm, totals + starting + 1]
        board[arm, totals + starting] = above + board[arm, _TREE + starting]
    for level in range(starting):
        board[arm, _TREE + level] = noise(normals, at, scale)
        board[arm, totals + level] = board[arm, totals + starting]
        at += PER_DRAW
    count = rows + 1
    board[arm, PULLS] = count
    board[arm, _BASE] = (board[arm, totals] + widths[ones(count)]) / count
    board[arm, _ROOT] = 1.0 / math.sqrt(count)
    return at


@kernel
def released_means(board: F64) -> F64:
    """Each arm's noisy sum over its pulls; NaN for arms without any."""
    levels = (board.shape[1] - _TREE) // 2
    means = np.empty(board.shape[0])
    for arm in range(board.shape[0]):
        pulls = board[arm, PULLS]
        means[arm] = board[arm, _TREE + levels] / pulls if pulls > 0.0 else math.nan
    return means


@kernel
def play(
    means: F64,
    widths: F64,
    levels: int,
    scale: float,
    horizon: int,
    reward_state: U64,
    noise_state: U64,
    checkpoints: I64,
    pulls: I64,
) -> None:
    """Rewards of plus or minus one up to the last checkpoint; the pulls of each arm at each.

    While the leading arm's index, with the growth of the last look, is above all other indices
    with the growth to come, it is the arm that `choose` would name, and nobody asks.

    Shapes: means (k,), checkpoints (C,), pulls (C, k).
    """
    n_arms = means.size
    board = empty_board(n_arms, levels)
    first = np.empty(PER_DRAW * levels * n_arms)
    random.fill_normals(noise_state, first)
    begin(board, levels, scale, first, 0)
    normals = np.empty(STOCK)
    at, room = STOCK, STOCK - PER_DRAW * levels
    turn = 0
    for recorded in range(checkpoints.size):
        while turn < checkpoints[recorded]:
            factor = growth(turn)
            arm = choose(board, factor)
            mean = means[arm]
            until = min(turn + _STRETCH, checkpoints[recorded])
            ceiling = _best_other(board, growth(until), arm)
            leads = True
            while leads and turn < until:
                if at > room:
                    random.fill_normals(noise_state, normals)
                    at = 0
                reward = arms.reward(reward_state, mean, 0.0, 1.0)
                at = learn(board, widths, arm, reward, horizon, scale, normals, at)
                turn += 1
                leads = board[arm, _BASE] + factor * board[arm, _ROOT] > ceiling
        for each in range(n_arms):
            pulls[recorded, each] = board[each, PULLS]
