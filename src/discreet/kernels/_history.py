"""Noise shared between releases through any lower triangular matrix, with all draws kept.

The noise of release i is the sum over k <= i of decoder[i, k] times draw k.
"""

import numpy as np
from numpy.typing import NDArray

from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@kernel
def step(
    decoder: F64, draws: F64, standing: F64, totals: F64, number: I64, batch: F64, fresh: F64
) -> None:
    """Make the next release: add a batch, and replace the noise that stands.

    Shapes: decoder (J, J); draws (J, p); standing, totals, fresh (1, p); batch (p,).
    """
    release = number[0]
    for i in range(batch.size):
        draws[release, i] = fresh[0, i]
        totals[0, i] += batch[i] - standing[0, i]
        standing[0, i] = 0.0
    for k in range(release + 1):
        for i in range(batch.size):
            standing[0, i] += decoder[release, k] * draws[k, i]
    for i in range(batch.size):
        totals[0, i] += standing[0, i]
    number[0] = release + 1
