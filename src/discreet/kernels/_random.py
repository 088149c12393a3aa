"""Fast seeded random numbers for simulations. Never a source of privacy noise.

Generator: SplitMix64 (Steele, Lea & Flood 2014), a counter with a stream's own odd stride, put
through a mixing function. Any number in the stream can be computed by itself, so blocks are
computed with vector instructions. Normals: the ziggurat with 1024 layers, after Marsaglia & Tsang
(2000) and Doornik (2005), with layer, sign and position taken from disjoint bits of one word.
Gamma: Marsaglia & Tsang (2000).
"""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels._compiling import kernel

F64 = NDArray[np.float64]
U64 = NDArray[np.uint64]

_LAYERS = 1024
_TAIL_START = 4.038849846109504  # where the outermost layer's tail begins
_LAYER_AREA = 0.0012263246463530893  # the area of every layer

_LAYER_BITS = np.uint64(_LAYERS - 1)
_S12, _S27, _S30, _S31 = (np.uint64(n) for n in (12, 27, 30, 31))
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STRIDE = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd
_FEWEST_FLIPS = 24  # strides with fewer changes between neighbouring bits mix badly


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
    """(position, stride) of a stream; spawned sequences give independent streams."""
    position, *candidates = sequence.generate_state(64, np.uint64)
    strides = (int(candidate) | 1 for candidate in candidates)
    flips = ((stride ^ (stride >> 1)).bit_count() for stride in strides)
    regular = next(i for i, count in enumerate(flips) if count >= _FEWEST_FLIPS)
    return np.array([position, candidates[regular] | np.uint64(1)], dtype=np.uint64)


@kernel
def mixed(position: np.uint64) -> np.uint64:
    """The word at a position of the stream."""
    word = (position ^ (position >> _S30)) * _FIRST
    word = (word ^ (word >> _S27)) * _SECOND
    return word ^ (word >> _S31)


@kernel
def numbered(number: int) -> U64:
    """(position, stride) of stream ``number``: the same numbers for whoever asks."""
    state = np.empty(2, np.uint64)
    state[0] = mixed(np.uint64(number) * _STRIDE)
    state[1] = _STRIDE
    return state


@kernel
def next_word(state: U64) -> np.uint64:
    """The next 64 random bits."""
    state[0] += state[1]
    return mixed(state[0])


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
        layer = np.int64(word & _LAYER_BITS)
        position = np.float64(np.int64(word) >> np.int64(11)) * 2.0**-52
        value = position * _EDGES[layer]
        if abs(position) < _RATIOS[layer]:
            return value  # type: ignore[no-any-return]  # an entry of an array, times a number
        if layer == 0:
            return _normal_tail(state, bool(position < 0.0))
        inner = math.exp(-0.5 * (_EDGES[layer] ** 2 - value**2))
        outer = math.exp(-0.5 * (_EDGES[layer + 1] ** 2 - value**2))
        if outer + uniform(state) * (inner - outer) < 1.0:
            return value  # type: ignore[no-any-return]  # an entry of an array, times a number
        word = next_word(state)


@kernel
def _normal_tail(state: U64, negative: bool) -> float:  # noqa: FBT001  # kernels take positions
    while True:
        beyond = -math.log(uniform(state)) / _TAIL_START
        if -2.0 * math.log(uniform(state)) >= beyond * beyond:
            return -_TAIL_START - beyond if negative else _TAIL_START + beyond


@kernel
def fill_normals(state: U64, out: F64) -> None:
    """Fill a flat array with independent standard normals.

    The first pass takes one word for each number and has no branches, so it runs on vectors; it
    leaves NaN for the one number in 230 that the ziggurat does not settle at once. The second
    pass settles those.
    """
    start, stride = state[0], state[1]
    state[0] = start + np.uint64(out.size) * stride
    for i in range(out.size):
        word = mixed(start + np.uint64(i + 1) * stride)
        layer = np.int64(word & _LAYER_BITS)
        position = np.float64(np.int64(word) >> np.int64(11)) * 2.0**-52
        inside = abs(position) < _RATIOS[layer]
        out[i] = position * _EDGES[layer] if inside else math.nan
    for i in range(out.size):
        if math.isnan(out[i]):
            out[i] = _from_word(state, mixed(start + np.uint64(i + 1) * stride))


@kernel
def chi_square(state: U64, dof: float) -> float:
    """One chi-square number with any dof > 0, as twice a gamma of half the dof."""
    if dof < 2.0:
        boost = math.pow(uniform(state), 2.0 / dof)
        return boost * _chi_square_from(state, dof + 2.0, normal(state), uniform(state))
    return _chi_square_from(state, dof, normal(state), uniform(state))


@kernel
def _chi_square_from(state: U64, dof: float, z: float, level: float) -> float:
    """The same for dof >= 2, started with a normal and a uniform number that have been drawn."""
    offset = 0.5 * dof - 1.0 / 3.0
    slope = 1.0 / math.sqrt(9.0 * offset)
    while True:
        root = 1.0 + slope * z
        cube = root * root * root
        square = z * z
        if cube > 0.0 and (math.log(level) < 0.5 * square + offset * (1.0 - cube + math.log(cube))):
            return 2.0 * offset * cube
        z, level = normal(state), uniform(state)


@kernel
def fill_chi_squares(state: U64, dofs: F64, out: F64) -> None:
    """Fill an array with independent chi-squares, one for each entry of ``dofs``.

    Marsaglia & Tsang's first test is a cheap part of their second and nearly always enough.
    """
    fill_normals(state, out)
    for i in range(dofs.size):
        z, dof = out[i], dofs[i]
        if dof < 2.0:
            out[i] = chi_square(state, dof)
            continue
        offset = 0.5 * dof - 1.0 / 3.0
        root = 1.0 + z / math.sqrt(9.0 * offset)
        level = uniform(state)
        if root > 0.0 and level < 1.0 - 0.0331 * (z * z) * (z * z):
            out[i] = 2.0 * offset * root * root * root
        else:
            out[i] = _chi_square_from(state, dof, z, level)
