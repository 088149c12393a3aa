"""What standard differential privacy costs: the adversary with two contexts, and its best reply.

Under *joint* differential privacy a person's own action may depend on that person's context. Here
it may not: the whole sequence of actions is protected, the current one included. Paper:
clm:standard_contextual_DP_implies_linear_regret. The learner is an oracle that knows the true
parameter; its regret is linear all the same.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from discreet import theory
from discreet.errors import ShapeError
from discreet.kernels import _arms as arms
from discreet.kernels import _random as random
from discreet.kernels import _response as response
from discreet.mechanism.noise.sources import NoiseSource, SystemNoise
from discreet.privacy import Guarantee
from discreet.problem import Problem
from discreet.simulation._simulate import streams
from discreet.simulation.environments import World

__all__ = ["RandomisedResponse", "TwoContexts", "play_response"]

_F64 = NDArray[np.float64]
_I64 = NDArray[np.int64]

_POLE = 2.0**-50  # how far the worse action's mean may lie above -1
_BATCH = 2 * 512


@dataclass(frozen=True)
class TwoContexts:
    """Two arms and two contexts: one maps the arms to theta* and -theta*, the other flips them.

    Each round's context is a fair coin. The better action has mean reward 1, the other -1, so a
    wrong choice costs 2. The compiled worlds have no such pair of their own. This is the paper's
    sphere in three dimensions with the optimal action at one pole and the other one within 2^-50
    of the other: its mean is -1 up to 1e-15, and its direction that of -theta* up to 5e-8.
    """

    dim = 3
    n_actions = 2

    @property
    def problem(self) -> Problem:
        """Unit actions, a unit parameter, rewards of plus or minus one."""
        return Problem(dim=self.dim, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)

    def start(self, sequence: np.random.SeedSequence) -> World:
        """A world with a random unit vector as its parameter.

        Args:
            sequence: the seed of everything random in it.

        Returns:
            The world, before its first round.
        """
        state = random.seed_state(sequence)
        theta = np.empty(self.dim)
        random.fill_normals(state, theta)
        arrays = arms.WorldArrays(
            kind=arms.BAND,
            n_actions=self.n_actions,
            theta=theta / np.linalg.norm(theta),
            band=arms.Band(1.0, -1.0, -1.0 + _POLE),
            groups=arms.NO_GROUPS,
            actions=np.zeros((self.dim, _BATCH)),
            means=np.zeros(_BATCH),
            best=np.ones(_BATCH // self.n_actions),
            next_start=np.array([_BATCH]),
            reward_std=0.0,
            reward_bound=1.0,
            drift=arms.NO_DRIFT,
        )
        return World(arrays, state)


@dataclass(frozen=True)
class _Response:
    """A choice, as far as a world cares."""

    index: int


class RandomisedResponse:
    """The best learner under standard (epsilon, delta)-differential privacy: an oracle and a coin.

    It knows theta*, names the better of two actions with the largest probability that the target
    allows, `theory.right_action_chance`, and the other one otherwise. It learns nothing.

    Guarantee. Neighbours: one round's decision set and reward are replaced. Each action depends
    on its own round's decision set alone, so the neighbours' sequences differ in one action, of
    which P(right) <= e^epsilon P(wrong) + delta. The action itself is covered, which is more than
    joint differential privacy.

    Args:
        theta: the true parameter, shape (d,).
        epsilon: the target, with respect to the whole sequence of actions.
        delta: the same; 0 will do.
        noise_source: for tests and simulations only; the guarantee is void with a seeded one.
    """

    def __init__(
        self,
        theta: ArrayLike,
        *,
        epsilon: float,
        delta: float,
        noise_source: NoiseSource | None = None,
    ) -> None:
        """Work out how often the coin may name the better action."""
        self._theta = np.array(theta, dtype=np.float64)
        self._source: NoiseSource = SystemNoise() if noise_source is None else noise_source
        chance = theory.right_action_chance(epsilon=epsilon, delta=delta)
        self._epsilon, self._delta = float(epsilon), float(delta)
        self._threshold = float(ndtri(chance))

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about all actions, each person's own included."""
        promise = Guarantee(
            epsilon=self._epsilon,
            delta=self._delta,
            joint=False,
            argument=(
                "randomised response on every action, which depends on its own round alone; it "
                "covers a person's own action as well (standard differential privacy)"
            ),
        )
        return promise if self._source.secret else promise.voided("its coin comes from a seed")

    def choose(self, actions: ArrayLike) -> _Response:
        """The better of two actions, or with the chance that privacy asks for the other one.

        Args:
            actions: two of them, shape (2, d).

        Returns:
            A decision whose ``index`` is the place of the action.

        Raises:
            ShapeError: if there are not two actions of d features.
        """
        pair = np.asarray(actions, dtype=np.float64)
        if pair.shape != (2, self._theta.size):
            raise ShapeError("actions", f"must be two, of {self._theta.size} features each")
        better = int(pair[1] @ self._theta > pair[0] @ self._theta)
        right = self._source.normals(1)[0] < self._threshold
        return _Response(better if right else 1 - better)

    def learn(self, decision: object, reward: float) -> None:
        """Learn nothing: the oracle knows the parameter.

        Args:
            decision: not used.
            reward: not used.
        """


def play_response(*, epsilon: float, delta: float, seed: int, checkpoints: _I64) -> _F64:
    """The pseudo-regret of randomised response against `TwoContexts`, at each checkpoint.

    The world's stream is the one that `simulation.run_seed` plays with the same seed.

    Args:
        epsilon: the privacy target, with respect to the whole sequence of actions.
        delta: the same.
        seed: which contexts, and which coin.
        checkpoints: rounds at which the regret is recorded, growing, shape (C,).

    Returns:
        The pseudo-regret so far, shape (C,).

    Raises:
        ParameterError: if epsilon or delta is out of range.
    """
    world_seed, _, response_seed = streams(seed)
    world = TwoContexts().start(world_seed)
    chance = theory.right_action_chance(epsilon=epsilon, delta=delta)
    regrets = np.empty(len(checkpoints))
    response.play(
        world.arrays, chance, world.state, random.seed_state(response_seed), checkpoints, regrets
    )
    return regrets
