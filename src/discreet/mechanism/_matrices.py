"""Encoders and decoders of strategies, written out."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular, toeplitz

from discreet.accounting import tree_depth
from discreet.errors import ParameterError

_F64 = NDArray[np.float64]

MOST_WRITTEN_OUT = 4096  # releases for which a matrix is written out


def few(releases: int) -> int:
    """The number of releases, at least one, if a matrix may be written out for so many."""
    if releases > MOST_WRITTEN_OUT:
        raise ParameterError(
            "strategy",
            f"is written out as a matrix, and {releases} releases are too many for that (at most "
            f"{MOST_WRITTEN_OUT}); use Buffered or Tree, or a schedule with fewer releases",
        )
    return max(1, releases)


def lower_toeplitz(column: _F64) -> _F64:
    """The lower triangular Toeplitz matrix with this first column."""
    return np.tril(toeplitz(column))


def decoder(encoder: _F64) -> _F64:
    """A C^-1, for sums of all batches alike: A is all ones."""
    ones = np.tril(np.ones_like(encoder))
    return np.tril(solve_triangular(encoder, ones.T, trans="T", lower=True).T)


@lru_cache(maxsize=8)
def optimised(weights: tuple[float, ...], turns: int) -> tuple[_F64, _F64]:
    """Encoder and decoder with the least weighted noise, by a fixed point; see `Optimised`."""
    sums = np.tril(np.ones((len(weights), len(weights))))
    target = sums.T @ (np.array(weights)[:, None] * sums)
    dual = np.ones(len(weights))
    for _ in range(turns):
        root = np.sqrt(dual)
        values, vectors = np.linalg.eigh(root[:, None] * target * root)
        square_root = (vectors * np.sqrt(values.clip(min=0.0))) @ vectors.T
        dual = np.diag(square_root).copy()
    gram = square_root / root[:, None] / root
    gram /= np.diag(gram).max()
    # C^T C = gram with C lower triangular: a Cholesky factor of the reversed matrix, reversed.
    try:
        encoder = np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1].T
    except np.linalg.LinAlgError:
        raise ParameterError(
            "weights", "are too far apart to be computed with; give some nearer to each other"
        ) from None
    encoder = np.tril(encoder)
    shown = decoder(encoder)
    for matrix in (encoder, shown):  # they are shared, and noise is calibrated by them
        matrix.setflags(write=False)
    return encoder, shown


def tree_matrices(releases: int, *, idle: bool) -> tuple[_F64, _F64]:
    """Node by node: which batches it holds, and which releases show it."""
    few(releases)
    levels = tree_depth(releases)
    nodes, shows = [], []
    times = np.arange(1, releases + 1)
    for level in range(levels):
        for block in range(releases // 2**level + 1):
            here = (times - 1) >> level == block
            shown = (times >> level == block + 1) & ((times >> level) & 1 == 1)
            # Node ``block`` is shown from its last batch until the level's next node is done.
            if block % 2 == 0 and shown.any():
                nodes.append(here.astype(float))
                shows.append(shown.astype(float))
            unfinished = (times >> level == block) & (block % 2 == 0)
            if idle and unfinished.any():
                nodes.append(np.zeros(releases))
                shows.append(unfinished.astype(float))
    return np.array(nodes), np.array(shows).T
