"""Fast seeded random numbers for simulations. Never a source of privacy noise.

Generator: xoshiro256++ of Blackman and Vigna, four 64-bit words of state held in an array.
Normals: the ziggurat with 256 layers, after Marsaglia & Tsang (2000) and Doornik (2005), with
layer, sign and position taken from disjoint bits of one word. Gamma: Marsaglia & Tsang (2000).
"""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels.compiling import kernel

F64 = NDArray[np.float64]
U64 = NDArray[np.uint64]

_LAYERS = 256
_TAIL_START = 3.6541528853610088  # where the outermost layer's tail begins
_LAYER_AREA = 0.00492867323397465524494  # the area of every layer

_EIGHT_BITS = np.uint64(_LAYERS - 1)
_S12, _S17, _S19, _S23, _S41, _S45 = (np.uint64(n) for n in (12, 17, 19, 23, 41, 45))


def _ziggurat_tables() -> tuple[F64, F64]:
    """Right edges of the layers, and the ratio of each edge to the next one in."""
    edges = np.zeros(_LAYERS + 1)
    edges[0] = _LAYER_AREA / math.exp(-0.5 * _TAIL_START**2)
    edges[1] = _TAIL_START
    for i in range(2, _LAYERS):
        density = _LAYER_AREA / edges[i - 1] + math.exp(-0.5 * edges[i - 1] ** 2)
        edges[i] = math.sqrt(-2.0 * math.log(density))
    return edges, edges[1:] / edges[:-1]


_EDGES, _RATIOS = _ziggurat_tables()


def seed_state(sequence: np.random.SeedSequence) -> U64:
    """A generator state from a seed sequence; spawned sequences give independent streams."""
    return sequence.generate_state(4, np.uint64).astype(np.uint64)


@kernel
def next_word(state: U64) -> np.uint64:
    """The next 64 random bits."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    mixed = s0 + s3
    word = ((mixed << _S23) | (mixed >> _S41)) + s0
    s2 ^= s0
    s3 ^= s1
    state[1] = s1 ^ s2
    state[0] = s0 ^ s3
    state[2] = s2 ^ (s1 << _S17)
    state[3] = (s3 << _S45) | (s3 >> _S19)
    return word  # type: ignore[no-any-return]


@kernel
def uniform(state: U64) -> float:
    """A uniform number in (0, 1), never an end point: with 53 bits the largest would round to 1."""
    return (np.float64(next_word(state) >> _S12) + 0.5) * 2.0**-52


@kernel
def below(state: U64, count: int) -> int:
    """A uniform integer in 0 ... count-1 (bias under count / 2**52)."""
    return int(uniform(state) * count)


@kernel
def normal(state: U64) -> float:
    """One standard normal number."""
    return _from_word(state, next_word(state))


@kernel
def _from_word(state: U64, word: np.uint64) -> float:
    """The ziggurat, started with a word that has been drawn."""
    while True:
        layer = np.int64(word & _EIGHT_BITS)
        position = np.float64(np.int64(word) >> np.int64(11)) * 2.0**-52
        value = position * _EDGES[layer]
        if abs(position) < _RATIOS[layer]:
            return value  # type: ignore[no-any-return]
        if layer == 0:
            return _normal_tail(state, bool(position < 0.0))
        inner = math.exp(-0.5 * (_EDGES[layer] ** 2 - value**2))
        outer = math.exp(-0.5 * (_EDGES[layer + 1] ** 2 - value**2))
        if outer + uniform(state) * (inner - outer) < 1.0:
            return value  # type: ignore[no-any-return]
        word = next_word(state)


@kernel
def _normal_tail(state: U64, negative: bool) -> float:  # noqa: FBT001  # kernels take positions
    while True:
        beyond = -math.log(uniform(state)) / _TAIL_START
        if -2.0 * math.log(uniform(state)) >= beyond * beyond:
            return -_TAIL_START - beyond if negative else _TAIL_START + beyond


@kernel
def fill_normals(state: U64, out: F64) -> None:
    """Fill a flat array with the same numbers that as many calls of `normal` would give.

    `next_word` is written out here so that the state stays in registers; that and taking the
    common case of the ziggurat inline is worth a factor of three.
    """
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for i in range(out.size):
        mixed = s0 + s3
        word = ((mixed << _S23) | (mixed >> _S41)) + s0
        s2 ^= s0
        s3 ^= s1
        shifted = s1 << _S17
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = (s3 << _S45) | (s3 >> _S19)
        layer = np.int64(word & _EIGHT_BITS)
        position = np.float64(np.int64(word) >> np.int64(11)) * 2.0**-52
        if abs(position) < _RATIOS[layer]:
            out[i] = position * _EDGES[layer]
        else:
            state[0], state[1], state[2], state[3] = s0, s1, s2, s3
            out[i] = _from_word(state, word)
            s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@kernel
def chi_square(state: U64, dof: float) -> float:
    """One chi-square number with any dof > 0, as twice a gamma of half the dof."""
    shape = 0.5 * dof
    boost = 1.0
    if shape < 1.0:
        boost = uniform(state) ** (1.0 / shape)
        shape += 1.0
    offset = shape - 1.0 / 3.0
    slope = 1.0 / math.sqrt(9.0 * offset)
    while True:
        z = normal(state)
        cube = (1.0 + slope * z) ** 3
        if cube <= 0.0:
            continue
        if math.log(uniform(state)) < 0.5 * z * z + offset * (1.0 - cube + math.log(cube)):
            return 2.0 * offset * cube * boost


@kernel
def fill_chi_squares(state: U64, dofs: F64, out: F64) -> None:
    """Fill an array with independent chi-squares, one for each entry of ``dofs``."""
    for i in range(dofs.size):
        out[i] = chi_square(state, dofs[i])
