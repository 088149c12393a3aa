"""Noise shared between releases through a few decaying buffers: a buffered linear Toeplitz factor.

The encoder C is lower triangular and Toeplitz, with first column c_0 = 1 and
c_k = sum over j of weight_j * decay_j^(k-1). The noise of the prefix sums is A C^-1 z, with A the
matrix of ones and z independent draws, one for each release. C^-1 z is a recurrence with one
buffer for each decay, so memory does not grow with the number of releases.

After Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024).
"""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@kernel
def step(
    decays: F64, weights: F64, buffers: F64, totals: F64, number: I64, batch: F64, noise: F64
) -> None:
    """Make the next release: add a batch and the next entry of C^-1 z, for the draw ``noise``.

    Shapes: decays, weights (b,); buffers (b, p); totals (1, p); batch (p,); noise (1, p), which is
    overwritten.
    """
    for j in range(decays.size):
        for i in range(batch.size):
            noise[0, i] -= weights[j] * buffers[j, i]
    for j in range(decays.size):
        for i in range(batch.size):
            buffers[j, i] = decays[j] * buffers[j, i] + noise[0, i]
    for i in range(batch.size):
        totals[0, i] += batch[i] + noise[0, i]
    number[0] += 1


@kernel
def row_norms(decays: F64, weights: F64, numbers: I64) -> F64:
    """The lengths of rows ``numbers`` (from 1, ascending) of A C^-1."""
    buffers = np.zeros(decays.size)
    found = np.empty(numbers.size)
    entry = 0.0  # of the first column of A C^-1
    square = 0.0
    at = 0
    for release in range(1, numbers[-1] + 1):
        change = 1.0 if release == 1 else 0.0
        for j in range(decays.size):
            change -= weights[j] * buffers[j]
        for j in range(decays.size):
            buffers[j] = decays[j] * buffers[j] + change
        entry += change
        square += entry * entry
        if release == numbers[at]:
            found[at] = math.sqrt(square)
            at += 1
    return found
