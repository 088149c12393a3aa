"""Nanoseconds per call of the single kernels, at several sizes: `make bench-kernels`.

Kernels are called from a compiled loop, so that what Python adds to a call does not count.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

from discreet.kernels import _arms as arms
from discreet.kernels import _linalg as linalg
from discreet.kernels import _random as random
from discreet.kernels import _rounds as rounds
from discreet.kernels import _score as score
from discreet.kernels import _tree as tree
from discreet.kernels._noise import Noise
from discreet.simulation.environments import Sphere

Line = tuple[str, float, str]

SIZES = ((5, 25), (50, 1000), (64, 4096))  # features, actions
REPEATS = 7
SECONDS = 0.03  # of one repeat, about


def best(loop: Callable[..., object], *arguments: Any) -> float:  # noqa: ANN401  # the loop's own
    """Nanoseconds of one of n turns of ``loop(n, ...)``; the best of several repeats."""
    loop(1, *arguments)
    count = 1
    while (taken := _seconds(loop, count, arguments)) < SECONDS:
        count = max(2 * count, int(count * SECONDS / max(taken, 1e-7)))
    return min(_seconds(loop, count, arguments) for _ in range(REPEATS)) / count * 1e9


def _seconds(loop: Callable[..., object], count: int, arguments: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    loop(count, *arguments)
    return time.perf_counter() - start


@numba.njit
def _fill_normals(count, state, out):  # noqa: ANN001, ANN202  # numba finds the types, here and below
    for _ in range(count):
        random.fill_normals(state, out)


@numba.njit
def _next_set(count, state, world):  # noqa: ANN001, ANN202
    for _ in range(count):
        arms.next_set(state, world)


@numba.njit
def _factor(count, packed, firsts, lower):  # noqa: ANN001, ANN202
    for _ in range(count):
        linalg.factor(packed, 1.0, 1.0, firsts, lower)


@numba.njit
def _forward(count, lower, firsts, vector):  # noqa: ANN001, ANN202
    for _ in range(count):
        vector[:] = 1.0  # or else it would shrink to nothing
        linalg.forward(lower, firsts, vector)


@numba.njit
def _best(count, actions, centre, lower, firsts, scores):  # noqa: ANN001, ANN202, PLR0917
    for _ in range(count):
        score.best(actions, 0, centre, lower, firsts, 1.0, scores)


@numba.njit
def _step(count, nodes, totals, row, fresh):  # noqa: ANN001, ANN202
    idle = np.zeros_like(nodes)
    clock = np.zeros(1, np.int64)
    for _ in range(count):
        starting = 2 * tree.carry(clock[0] + 1, nodes.shape[0])
        tree.step(nodes, idle, totals, clock, row, fresh[:starting], 2**40)


@numba.njit
def _draw_nodes(count, state, law, firsts, nodes, scratch):  # noqa: ANN001, ANN202, PLR0917
    for _ in range(count):
        rounds.draw_nodes(state, law, firsts, nodes, scratch)


def normals() -> Iterator[Line]:
    """Per number, in blocks of several lengths."""
    for size in (20, 2500, 262_144):
        cost = best(_fill_normals, _state(), np.empty(size))
        yield f"random.fill_normals, {size:,} at once", cost / size, "number"


def sets() -> Iterator[Line]:
    """Per decision set; batches are drawn on the way."""
    for dim, count in SIZES:
        world = Sphere(dim=dim, n_actions=count).start(np.random.SeedSequence(0))
        cost = best(_next_set, world.state, world.arrays)
        yield f"arms.next_set, d={dim}, K={count}", cost, "set"


def algebra() -> Iterator[Line]:
    """The factor, one solve, and the scores of a decision set."""
    rng = np.random.default_rng(0)
    for dim, count in SIZES:
        rows = rng.standard_normal((4 * dim, dim))
        firsts = linalg.firsts_of((dim,))
        packed = np.empty(linalg.packed_size(firsts))
        linalg.pack(rows.T @ rows, rows.sum(axis=0), firsts, packed)
        lower, vector = np.zeros((dim, dim)), np.ones(dim)
        yield f"linalg.factor, d={dim}", best(_factor, packed, firsts, lower), "call"
        yield f"linalg.forward, d={dim}", best(_forward, lower, firsts, vector), "call"
        actions = rng.standard_normal((dim, count))
        cost = best(_best, actions, vector, lower, firsts, np.empty(count))
        yield f"score.best, d={dim}, K={count}", cost, "call"


def trees() -> Iterator[Line]:
    """A step of the tree with its carries; its noise is not drawn here."""
    for dim, levels in ((5, 0), (5, 17), (5, 26), (50, 26)):
        size = linalg.packed_size(linalg.firsts_of((dim,)))
        nodes, totals = np.zeros((levels, size)), np.zeros((levels + 1, size))
        cost = best(_step, nodes, totals, np.full(size, 1e-3), np.zeros((2 * levels, size)))
        yield f"tree.step, d={dim}, {levels} levels", cost, "row"


def noise() -> Iterator[Line]:
    """Fresh noise, per node, two nodes at a time as half of all rows need."""
    for dim in (5, 50):
        for name, dof in (("gaussian", 0.0), ("wishart", 1000.0)):
            law = Noise(scale=1.0, moment_scale=1.0, dof=dof)
            firsts = linalg.firsts_of((dim,))
            nodes = np.empty((2, linalg.packed_size(firsts)))
            scratch = np.empty(len(nodes) * (dim * (dim + 1) // 2 + 2 * dim))
            cost = best(_draw_nodes, _state(), law, firsts, nodes, scratch)
            yield f"rounds.draw_nodes, {name}, d={dim}", cost / 2, "node"


def _state() -> np.ndarray:
    return random.seed_state(np.random.SeedSequence(0))


def main() -> None:
    """Print a line for each as it is known."""
    for group in (normals, sets, algebra, trees, noise):
        for name, nanoseconds, unit in group():
            print(f"{name:<42} {nanoseconds:>14,.1f} ns per {unit}", flush=True)


if __name__ == "__main__":
    main()
