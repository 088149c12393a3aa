"""Discrete Gaussian numbers, exactly distributed: whole numbers only, no rounding anywhere.

After Karney (2016), "Sampling exactly from the normal distribution", and Canonne, Kamath & Steinke
(2020), "The discrete Gaussian for differential privacy". Random bits are compared with the binary
digits of fractions, and every probability, exp(-g) included, is made of such comparisons.

Random bits come in an array of words, lowest bit of a word first. A function reads on from bit
``at`` and also returns where it stopped. Past the last bit that is `OUT`, and from then on every
question is answered with no or zero, so that all loops end; the answers are then thrown away.
"""

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import _random as random
from discreet.kernels._compiling import kernel

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

MOST_STDS = 64  # the largest whole number of stds in a draw; beyond: probability below exp(-2000)
REACH = MOST_STDS + 1  # every draw is nearer to zero than this many stds
LARGEST_STD = 2**50  # 2 * (2 * 64 + 2) * 2^50 < 2^63, and nothing computed here is larger

OUT = 2**62  # the bit to read next, when there are none left
TOO_FAR = -1  # instead of a position: a draw beyond REACH
BAD_STD = -2  # instead of a position: a std that is not in 1 ... LARGEST_STD

_REJECTED, _ACCEPTED, _BEYOND = 0, 1, 2


@kernel
def fill_words(state: U64, out: U64) -> None:
    """Fill an array with the next words of a seeded stream. Never a source of privacy noise."""
    for i in range(out.size):
        out[i] = random.next_word(state)


@kernel
def _take(words: U64, at: int, width: int) -> tuple[int, int]:
    """A number made of the next ``width`` bits, 0 <= width < 63, and where they end."""
    if at + width > 64 * words.size:
        return 0, OUT
    word, shift = at >> 6, at & 63
    value = words[word] >> np.uint64(shift) if width > 0 else np.uint64(0)
    if shift + width > 64:
        value |= words[word + 1] << np.uint64(64 - shift)
    mask = (np.int64(1) << width) - np.int64(1)
    return np.int64(value & np.uint64(mask)), at + width  # type: ignore[return-value]  # compiled code has no other whole numbers


@kernel
def _width(bound: int) -> int:
    """How many bits the numbers 0 ... bound-1 need: the least w with 2^w >= bound."""
    rest, width = bound - 1, 0
    for step in (32, 16, 8, 4, 2, 1):
        if rest >> step > 0:
            rest >>= step
            width += step
    return width + rest


@kernel
def _below(words: U64, at: int, bound: int, width: int) -> tuple[int, int]:
    """A uniform number in 0 ... bound-1: ``width`` bits, as `_width` says, until they are one."""
    while True:
        value, at = _take(words, at, width)
        if value < bound:
            return value, at


@kernel
def _chance(words: U64, at: int, numerator: int, denominator: int) -> tuple[bool, int]:
    """Yes with probability numerator / denominator, for 0 <= numerator <= denominator.

    That is whether a uniform number in [0, 1) is smaller. Its binary digits are random bits, and
    the first that differs from the fraction's decides, after two digits on average. Where the
    fraction has only zeros left, it is not smaller.
    """
    if numerator == denominator:
        return at != OUT, at
    rest = numerator
    while rest > 0:
        rest <<= 1
        digit = 0
        if rest >= denominator:
            rest -= denominator
            digit = 1
        bit, at = _take(words, at, 1)
        if at == OUT:
            return False, at
        if bit != digit:
            return digit == 1, at
    return False, at


@kernel
def _exp_chance(words: U64, at: int, a: int, b: int, c: int, d: int) -> tuple[bool, int]:
    """Yes with probability exp(-g), for g = (a/b) (c/d), both fractions in 0 ... 1.

    Trials succeed with probability g/1, g/2, g/3 and so on until one fails. The i-th is the first
    to fail with probability g^(i-1)/(i-1)! - g^i/i!; summed over odd i that is exp(-g).
    """
    i = 1
    while True:
        yes, at = _chance(words, at, 1, i)
        if yes:
            yes, at = _chance(words, at, a, b)
        if yes:
            yes, at = _chance(words, at, c, d)
        if not yes:
            return at != OUT and i & 1 == 1, at
        i += 1


@kernel
def _whole_stds(words: U64, at: int) -> tuple[bool, int, int]:
    """(yes, k, at): yes with k = 0, 1, 2, ... with a probability proportional to exp(-k^2/2).

    k successes of probability exp(-1/2) before the first failure, and then k(k-1) further ones.
    """
    k = -1
    yes = True
    while yes:
        yes, at = _exp_chance(words, at, 1, 2, 1, 1)
        k += 1
    for _ in range(k * (k - 1)):
        yes, at = _exp_chance(words, at, 1, 2, 1, 1)
        if not yes:
            return False, k, at
    return at != OUT, k, at


@kernel
def _attempt(words: U64, at: int, std: int, width: int) -> tuple[int, int, int]:
    """(verdict, n, at): accepted with n, with a probability proportional to exp(-n^2/(2 std^2)).

    n = k std + j without its sign, with k from `_whole_stds` and j uniform in 0 ... std-1.
    With x = j/std it stays with probability exp(-x (2k+x)/2), in k+1 equal parts, since
    k^2/2 + x (2k+x)/2 = (k+x)^2/2. Then a sign; zero has only one.
    """
    yes, k, at = _whole_stds(words, at)
    if not yes:
        return _REJECTED, 0, at
    if k > MOST_STDS:
        return _BEYOND, 0, at
    j, at = _below(words, at, std, width)
    for _ in range(k + 1):
        yes, at = _exp_chance(words, at, j, std, 2 * k * std + j, (2 * k + 2) * std)
        if not yes:
            return _REJECTED, 0, at
    n = k * std + j
    minus, at = _take(words, at, 1)
    if minus == 0:
        return _ACCEPTED, n, at
    return (_REJECTED if n == 0 else _ACCEPTED), -n, at


@kernel
def discrete_gaussian(words: U64, at: int, stds: I64, out: I64, done: int) -> tuple[int, int]:
    """Fill ``out``, row by row, from sample ``done`` on, reading ``words`` from position ``at``.

    Shapes: words (n,); stds (p,), each from 1 to `LARGEST_STD`; out (count, p). Entry (i, c) is a
    whole number n with probability proportional to exp(-n^2 / (2 stds[c]^2)), independent of all
    others. Every sample starts with a new word.

    Returns the position of the next word and the number of samples done. Where the words run out
    inside a sample, that is the position where this sample began: append more words to the rest
    from there, and call again. A sample is thus a function of an endless stream of words, wherever
    the stream is cut. To throw away the words of an unfinished sample would not do: samples that
    need many words would become too rare.

    Instead of a position: `TOO_FAR` where a draw would lie beyond `REACH` stds, `BAD_STD` where a
    std is out of range.
    """
    columns = stds.size
    while done < out.size:
        row, column = done // columns, done % columns
        std = stds[column]
        if std < 1 or std > LARGEST_STD:
            return BAD_STD, done
        width = _width(std)
        verdict, n, bit = _REJECTED, 0, 64 * at
        while verdict == _REJECTED and bit != OUT:
            verdict, n, bit = _attempt(words, bit, std, width)
        if bit == OUT:
            return at, done
        if verdict == _BEYOND:
            return TOO_FAR, done
        out[row, column] = n
        at = (bit + 63) >> 6
        done += 1
    return at, done
