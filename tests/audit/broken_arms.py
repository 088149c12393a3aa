"""Multi-armed learners that promise more than they keep: each the real thing with one fault."""

import numpy as np

from discreet.baselines import AdaPUCB, UpperConfidence
from discreet.baselines.arms._adaptive import AdaptiveEpisodes
from discreet.baselines.arms._phases import PhasedLearner
from discreet.baselines.arms._ucb import _UpperConfidenceLearner
from discreet.kernels import _phases as phases

EPSILON = 2.0
SIZES = {"n_arms": 2, "horizon": 64, "epsilon": EPSILON}


class _PapersScale(AdaptiveEpisodes):
    """The noise for rewards in [0, 1], on rewards in [-1, 1]."""

    @property
    def noise_scale(self) -> float:
        return 1.0 / self.epsilon


def papers_scale() -> PhasedLearner:
    """Copied from the paper by somebody who forgot that rewards are twice as wide here."""
    return PhasedLearner(_PapersScale(**SIZES), None)


class _OneLevel(UpperConfidence):
    """Noise that would do if a reward were in one node of its tree."""

    @property
    def noise_scale(self) -> float:
        return 2.0 / EPSILON


def tree_with_the_noise_of_one_level() -> _UpperConfidenceLearner:
    """The budget is spent on every level anew."""
    return _UpperConfidenceLearner(_OneLevel(**SIZES), None)


class _Rewritten(AdaPUCB):
    """Releases that are made here, of all of an arm's rewards so far and of the last batch's."""

    def __init__(self) -> None:
        super().__init__(**SIZES)
        self._rng = np.random.default_rng()
        self._raw, self._last = np.zeros(2), np.zeros(2)

    def _take(self, arm: int, reward: float) -> None:
        self._raw[arm] += reward
        self._last[arm] += reward
        super()._take(arm, reward)
        if self._board[arm, phases.HELD] == 0:
            self._release(arm)
            self._last[arm] = 0.0

    def _release(self, arm: int) -> None:
        raise NotImplementedError


class ReusedData(_Rewritten):
    """Forgets to forget: every release is of all rewards, with one new Laplace number."""

    def _release(self, arm: int) -> None:
        noise = self._rng.laplace(scale=2.0 / EPSILON)
        self._board[arm, phases.RELEASED] = round((self._raw[arm] + noise) * 2**20) / 2**20
        self._board[arm, phases.WEIGHT] = self._board[arm, phases.PULLS]


class OffTheGrid(_Rewritten):
    """Adds floating-point noise as it comes."""

    def _release(self, arm: int) -> None:
        noise = self._rng.laplace(scale=2.0 / EPSILON)
        self._board[arm, phases.RELEASED] = self._last[arm] + noise


class SharedNoise(_Rewritten):
    """The same Laplace number in all releases of an arm: it would do for one."""

    def __init__(self) -> None:
        super().__init__()
        self._noise = self._rng.laplace(scale=2.0 / EPSILON, size=2)

    def _release(self, arm: int) -> None:
        noisy = self._last[arm] + self._noise[arm]
        self._board[arm, phases.RELEASED] = round(noisy * 2**20) / 2**20
