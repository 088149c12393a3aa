"""A world of real records: breast tumours, to be called benign or malignant.

The Wisconsin diagnostic data set (Street, Wolberg & Mangasarian 1993; 569 tumours) as scikit-learn
ships it, in the extra `data`: nothing is downloaded. A tumour is a person's record; there are two
actions, and the reward is 1 for the right word and -1 for the wrong one. An action's features are
its own block of a constant and four measurements, brought to [-1, 1] by ranges that are stated here
and not computed from the data. No linear rule is always right, so everybody has some regret.
"""

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.problem import Problem
from discreet.simulation.environments import Recorded

F64 = NDArray[np.float64]

MISSING = "needs scikit-learn, which has the records; pip install 'discreet[data]'"
# Largest radius (mm), texture (grey levels), concave points and smoothness of a tumour's cells.
_RANGES = {
    "worst radius": (0.0, 40.0),
    "worst texture": (0.0, 50.0),
    "worst concave points": (0.0, 0.3),
    "worst smoothness": (0.0, 0.3),
}
_THETA_NORM = 3.0


def available() -> bool:
    """Whether the records are installed."""
    return find_spec("sklearn") is not None


def patients() -> Recorded:
    """The world. Regret is counted against the right word for everybody: 2 for each wrong one.

    Returns:
        Two actions of ten features for each of 569 people.

    Raises:
        ParameterError: if scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  # an extra
    except ImportError:
        raise ParameterError("environment", f"patients {MISSING}") from None
    data = load_breast_cancer()
    names = list(data.feature_names)
    people = np.column_stack(
        [_scaled(data.data[:, names.index(name)], *ends) for name, ends in _RANGES.items()]
    )
    rows = np.column_stack([np.ones(len(people)), people]) / np.sqrt(1 + len(_RANGES))
    width = rows.shape[1]
    sets = np.zeros((len(rows), 2, 2 * width))
    sets[:, 0, :width] = rows
    sets[:, 1, width:] = rows
    means = np.where(data.target[:, None] == np.arange(2), 1.0, -1.0)
    return Recorded(
        problem=Problem(dim=2 * width, action_norm=1, reward_bound=1, theta_norm=_THETA_NORM),
        sets=sets,
        means=means,
        best=np.ones(len(rows)),
    )


def _scaled(values: F64, low: float, high: float) -> F64:
    return np.clip((2 * values - low - high) / (high - low), -1.0, 1.0)
