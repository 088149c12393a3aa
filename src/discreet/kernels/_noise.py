"""From standard random numbers to one node's noise, in packed form.

The last diagonal entry of the augmented matrix is never released, so it is never drawn.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _linalg as linalg
from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


class Noise(NamedTuple):
    """What a node draws: Gaussian (dof 0) or Wishart."""

    scale: float  # Gaussian: the standard deviation of the Gram matrix; Wishart: squared row norm
    moment_scale: float  # Gaussian: the standard deviation of the moment
    dof: float


@kernel
def symmetric_gaussian(nodes: F64, std: float, moment_std: float, firsts: I64) -> None:
    """Scale standard normals in place: ``std`` off the diagonal, sqrt(2)*std on it.

    Paper: sec:dp-gauss, Z = (Z' + Z'^T)/sqrt(2). The doubled diagonal carries the proof (E1). The
    moment has a scale of its own.

    Shapes: nodes (count, p), one packed node a row; firsts (d,); see `linalg`.
    """
    dim, diagonal = firsts.size, linalg.diagonal(firsts)
    for at in range(nodes.shape[0]):
        for i in range(nodes.shape[1] - dim):
            nodes[at, i] *= std
        for i in range(nodes.shape[1] - dim, nodes.shape[1]):
            nodes[at, i] *= moment_std
        for i in range(dim):
            nodes[at, diagonal[i]] *= math.sqrt(2.0)


@kernel
def wishart(normals: F64, chi_squares: F64, scale: float, firsts: I64, packed: F64) -> None:
    """W = scale * A A^T by Bartlett's decomposition, A lower triangular of size d + 1.

    What is outside the blocks is not worked out: dropping it keeps eigenvalues within their range.

    Shapes: normals (d(d+1)/2,) for the entries below the diagonal, row by row; chi_squares (d,)
    with dof - i degrees of freedom for diagonal entry i (the last one is not needed), which are
    replaced by their roots.
    """
    dim = chi_squares.size
    roots = chi_squares
    for i in range(dim):
        roots[i] = math.sqrt(chi_squares[i])
    at = 0
    for i in range(dim + 1):
        row = i * (i - 1) // 2
        for j in range(firsts[i] if i < dim else 0, min(i, dim)):
            column = j * (j - 1) // 2
            entry = normals[row + j] * roots[j]
            for k in range(j):
                entry += normals[row + k] * normals[column + k]
            packed[at] = scale * entry
            at += 1
        if i < dim:
            entry = roots[i] * roots[i]
            for k in range(i):
                entry += normals[row + k] * normals[row + k]
            packed[at] = scale * entry
            at += 1
