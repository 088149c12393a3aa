"""Rows of features: sparse rows, their products, their sketches, and dense maps of them.

Sparse rows are three arrays: row r has ``values[s]`` at ``coordinates[s]`` for s from ``starts[r]``
to before ``starts[r + 1]``. A *pick* says for each row that is made which sparse row it is made of.
Each row is computed by itself and in one order, so a row is the same, to the last bit, in whatever
company it is computed.
"""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels._compiling import reproducible
from discreet.kernels._random import mixed

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_ONE = np.uint64(1)


@reproducible
def scatter(
    starts: I64,
    coordinates: I64,
    values: F64,
    pick: I64,
    scale: float,
    offsets: I64,
    out: F64,
) -> None:
    """Write the picked rows, times ``scale``, into ``out`` from column ``offsets[i]`` of row i on.

    Shapes: pick and offsets (N,), out (N, d).
    """
    for i in range(pick.size):
        for s in range(starts[pick[i]], starts[pick[i] + 1]):
            out[i, offsets[i] + coordinates[s]] = scale * values[s]


@reproducible
def products(
    starts: I64,
    coordinates: I64,
    values: F64,
    pick: I64,
    other_starts: I64,
    other_coordinates: I64,
    other_values: F64,
    other_pick: I64,
    other_size: int,
) -> tuple[I64, I64, F64]:
    """The outer products of rows with others, flattened: N sparse rows."""
    ends = np.zeros(pick.size + 1, np.int64)
    for i in range(pick.size):
        width = starts[pick[i] + 1] - starts[pick[i]]
        other_width = other_starts[other_pick[i] + 1] - other_starts[other_pick[i]]
        ends[i + 1] = ends[i] + width * other_width
    places = np.empty(ends[-1], np.int64)
    found = np.empty(ends[-1])
    at = 0
    for i in range(pick.size):
        for s in range(starts[pick[i]], starts[pick[i] + 1]):
            for t in range(other_starts[other_pick[i]], other_starts[other_pick[i] + 1]):
                places[at] = coordinates[s] * other_size + other_coordinates[t]
                found[at] = values[s] * other_values[t]
                at += 1
    return ends, places, found


@reproducible
def shorten(rows: F64) -> None:
    """Scale rows that are longer than 1 to that length; entries must have finite squares."""
    for r in range(rows.shape[0]):
        square = 0.0
        for j in range(rows.shape[1]):
            square += rows[r, j] * rows[r, j]
        if square > 1.0:
            length = math.sqrt(square)
            for j in range(rows.shape[1]):
                rows[r, j] /= length


@reproducible
def sketches(
    starts: I64,
    coordinates: I64,
    values: F64,
    pick: I64,
    other_starts: I64,
    other_coordinates: I64,
    other_values: F64,
    other_pick: I64,
    other_size: int,
    key: np.uint64,
    out: F64,
) -> None:
    """`products`, each row added up in buckets with signs, and shortened to length 1 if longer.

    Bucket and sign follow from the key and the coordinate. Shape: out (N, buckets), zeros before.
    """
    buckets = np.uint64(out.shape[1])
    for i in range(pick.size):
        for s in range(starts[pick[i]], starts[pick[i] + 1]):
            for t in range(other_starts[other_pick[i]], other_starts[other_pick[i] + 1]):
                place = coordinates[s] * other_size + other_coordinates[t]
                word = mixed(np.uint64(place) ^ key)
                bucket = np.int64((word >> _ONE) % buckets)
                product = values[s] * other_values[t]
                out[i, bucket] += product if word & _ONE else -product
    shorten(out)


@reproducible
def shorten_any(rows: F64, tolerance: float, cut: NDArray[np.bool_]) -> None:
    """The same for any finite entries; mark rows that were longer than 1 by more than a trace."""
    for r in range(rows.shape[0]):
        peak = 0.0
        for j in range(rows.shape[1]):
            peak = max(peak, abs(rows[r, j]))
        if peak > 0.0:
            square = 0.0
            for j in range(rows.shape[1]):
                square += (rows[r, j] / peak) * (rows[r, j] / peak)
            length = math.sqrt(square)
            if peak > 1.0 / length:
                cut[r] = peak > (1.0 + tolerance) / length
                for j in range(rows.shape[1]):
                    rows[r, j] = rows[r, j] / peak / length


@reproducible
def project(rows: F64, matrix: F64, out: F64) -> None:
    """``rows @ matrix``, in one order. Shapes: (m, s), (s, t), and (m, t) zeros before."""
    for r in range(rows.shape[0]):
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                out[r, j] += rows[r, i] * matrix[i, j]


@reproducible
def waves(starts: I64, coordinates: I64, values: F64, frequencies: F64, out: F64) -> None:
    """Cosines and sines of each row's products with the frequencies, of length 1 together.

    Shapes: frequencies (s, count), out (m, 2 count): first the cosines, then the sines. They may
    differ in their last bit between machines, as every cosine does.
    """
    count = frequencies.shape[1]
    scale = 1.0 / math.sqrt(count)
    angles = np.empty(count)
    for r in range(out.shape[0]):
        angles[:] = 0.0
        for s in range(starts[r], starts[r + 1]):
            for j in range(count):
                angles[j] += values[s] * frequencies[coordinates[s], j]
        for j in range(count):
            out[r, j] = scale * math.cos(angles[j])
            out[r, count + j] = scale * math.sin(angles[j])
