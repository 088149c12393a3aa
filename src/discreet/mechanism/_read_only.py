"""Arrays that nobody can write to."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A copy for good: its memory is that of a bytes object, so no flag makes it writable."""
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)
