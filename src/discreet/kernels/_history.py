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
    decoder: F64, draws: F64, held: F64, totals: F64, number: I64, batch: F64, noise: F64
) -> None:
    """Make the next release: add a batch, and replace the noise of the release before.

    Shapes: decoder (J, J); draws (J, p); held, totals, noise (1, p); batch (p,).
    """
    release = number[0]
    for i in range(batch.size):
        draws[release, i] = noise[0, i]
        totals[0, i] += batch[i] - held[0, i]
        held[0, i] = 0.0
    for k in range(release + 1):
        for i in range(batch.size):
            held[0, i] += decoder[release, k] * draws[k, i]
    for i in range(batch.size):
        totals[0, i] += held[0, i]
    number[0] = release + 1
