"""Logged rounds of two worlds, and the private value that is released of each."""

from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from discreet import accounting
from discreet.audit import _trials as trials
from discreet.evaluation import PrivateValues
from discreet.privacy import Privacy

if TYPE_CHECKING:
    from discreet.evaluation import PrivateValue

F64 = NDArray[np.float64]

_ROWS = 8  # of other people, which a policy never repeats: they count nothing
_LOW, _HIGH, _CLIP = -1.0, 1.0, 2.0


def played(privacy: Privacy, effort: trials.Effort) -> trials.Evidence:
    """Trials of both worlds, shape (trials, 1, 4): the noisy sums, which all else follows from.

    One person's rounds have the largest weight. In one world their reward is the highest; in the
    other the lowest, or, where a person may only stay away, the weight is 0.
    """
    away = privacy.neighbours == accounting.Neighbours.ADD_REMOVE
    other = (0.0, _HIGH) if away else (1.0, _LOW)
    count, jobs = effort.trials, effort.jobs
    one, two = (
        trials.many(partial(_many, privacy, weight, reward), count=count, jobs=jobs)
        for weight, reward in ((1.0, _HIGH), other)
    )
    value, weight = (1.0, 1.0) if away else (2.0, 0.0)
    return trials.split(one, two, np.array([[value, weight, value, weight]]))


def _many(privacy: Privacy, probability: float, reward: float, count: int) -> F64:
    own = privacy.contributions_per_user
    rewards = np.full(_ROWS + own, 0.0)
    targets = np.zeros(_ROWS + own)
    rewards[:own], targets[:own] = reward, probability
    shown = np.empty((count, 1, 4))
    for trial in range(count):
        values = PrivateValues(low=_LOW, high=_HIGH, clip=_CLIP, privacy=privacy)
        values.add(rewards, propensities=1.0 / _CLIP, targets=targets)
        released = cast("PrivateValue", values.release().values[0])
        shown[trial, 0] = np.array(released.released) / released.steps
    return shown
