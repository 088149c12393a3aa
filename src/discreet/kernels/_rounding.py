"""A row in whole numbers."""

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _linalg as linalg
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


REFUSED = -1  # instead of a squared norm: the row is too large for 64-bit numbers, or not a number
_LARGEST = 2.0**31  # of a reward in steps, and of an action's norm: products stay below 2^62


@kernel
def towards_zero(
    action: F64, reward: float, per_action: float, per_reward: float, steps: I64
) -> int:
    """Round a row towards zero to whole steps; the squared norm of its action, in steps.

    ``per_action`` and ``per_reward`` are steps in a unit, powers of two: multiplying by one is
    exact, and so is dropping what is behind the point. A row that is far too large, or holds NaN,
    is `REFUSED`, and all steps are zero then.

    Shapes: action (d,), steps (d + 1,), the reward last.
    """
    steps[:] = 0
    size = 0.0  # in floating point, where nothing overflows
    for i in range(action.size):
        size += (action[i] * per_action) * (action[i] * per_action)
    if not (size < _LARGEST * _LARGEST and abs(reward * per_reward) < _LARGEST):
        return REFUSED
    square = 0
    for i in range(action.size):
        steps[i] = int(action[i] * per_action)
        square += steps[i] * steps[i]
    steps[action.size] = int(reward * per_reward)
    return square


@kernel
def packed(
    action: F64,
    reward: float,
    per_action: float,
    per_reward: float,
    largest_square: int,
    largest_reward: int,
    firsts: I64,
    row: I64,
) -> bool:
    """Round a row and pack it, if it is then within its bounds; whether it is.

    Shapes: action, firsts (d,), row (p,); see `linalg`.
    """
    steps = np.empty(action.size + 1, np.int64)
    square = towards_zero(action, reward, per_action, per_reward, steps)
    if square == REFUSED or square > largest_square or abs(steps[-1]) > largest_reward:
        return False
    linalg.pack_row(steps[:-1], steps[-1], firsts, row)
    return True
