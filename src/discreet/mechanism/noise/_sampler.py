"""Discrete Gaussian numbers from a source of random words.

No floating point is involved: what is drawn has exactly the law that it should have, if the
source's words are uniform. How long a draw takes depends on what is drawn; that is not hidden from
anyone who can time it.
"""

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.kernels import _discrete_gaussian as kernel
from discreet.mechanism.noise.sources import NoiseSource

I64 = NDArray[np.int64]

_WORDS_EACH = 3  # a little more than one sample needs on average
_WORDS_MORE = 16


def draw(source: NoiseSource, stds: I64, count: int) -> I64:
    """Discrete Gaussians, shape (count, p), for the parameters ``stds``, shape (p,).

    Entry (i, c) is n with probability proportional to exp(-n^2 / (2 stds[c]^2)), and nearer to zero
    than ``REACH`` times stds[c]. Words that no sample has read are dropped. Where a parameter is 0
    nothing is drawn, and the entry is 0.
    """
    noisy = stds != 0
    if not noisy.all():
        found = np.zeros((count, stds.size), dtype=np.int64)
        found[:, noisy] = draw(source, stds[noisy], count)
        return found
    drawn = np.empty((count, stds.size), dtype=np.int64)
    words = source.words(_WORDS_EACH * drawn.size + _WORDS_MORE)
    at, done = kernel.discrete_gaussian(words, 0, stds, drawn, 0)
    while done < drawn.size:
        if at == kernel.BAD_STD:
            raise ParameterError("stds", "hold one out of range; give whole numbers, 1 to 2**50")
        if at == kernel.TOO_FAR:
            raise OverflowError(f"a draw is beyond {kernel.REACH} standard deviations; draw again")
        more = source.words(_WORDS_EACH * (drawn.size - done) + _WORDS_MORE)
        words = np.concatenate((words[at:], more))
        at, done = kernel.discrete_gaussian(words, 0, stds, drawn, done)
    return drawn
