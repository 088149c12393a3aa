"""The binary tree: what stands, what is shared, and that streaming equals the dense matrices."""

from collections.abc import Callable

import numpy as np
import pytest

from discreet.accounting import tree_depth
from discreet.kernels import _tree as tree

IDLE = {"pan-private": True, "covering": False}


class StreamedTree:
    """Drive the kernel with rows and draws from lists, one packed number a row."""

    def __init__(self, horizon: int, *, idle: bool, draw: Callable[[], float]) -> None:
        self.horizon = horizon
        self.levels = tree_depth(horizon)
        self.per_level = 2 if idle else 1
        self.draw = draw
        self.nodes = np.zeros((self.levels, 1))
        self.idle = np.zeros((self.levels, 1))
        self.totals = np.zeros((self.levels + 1, 1))
        self.clock = np.zeros(1, dtype=np.int64)
        tree.begin(self.nodes, self.idle, self.totals, self._fresh(self.levels))

    def _fresh(self, starting: int) -> np.ndarray:
        draws = [self.draw() for _ in range(starting * self.per_level)]
        return np.array(draws, dtype=np.float64).reshape(-1, 1)

    def add(self, row: float) -> float:
        fresh = self._fresh(tree.carry(int(self.clock[0]) + 1, self.levels))
        row_array = np.array([row])
        tree.step(self.nodes, self.idle, self.totals, self.clock, row_array, fresh, self.horizon)
        return self.release

    @property
    def release(self) -> float:
        return float(self.totals[0, 0])


def draws_by_node(horizon: int, drawn: list[float], *, idle: bool) -> dict[tuple[int, int], float]:
    """Which draw belongs to which (level, stretch): levels start in order, node before idle."""
    order = iter(drawn)
    noise = {}
    for t in range(horizon + 1):
        for level in range(tree_depth(horizon)):
            if t % (2 << level) == 0:
                noise[level, (t >> level) + 1] = next(order)
                if idle:
                    noise[level, t >> level] = next(order)
    return noise


def materialize(
    horizon: int, *, idle: bool
) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """The tree as matrices, written from its definition and not from the kernel.

    Returns (encoder, decoder, keys): nodes = encoder @ rows + noise, releases = decoder @ nodes,
    where release t is the one after t rows. Nodes are dyadic blocks; in the pan-private form a
    level whose bit of t is 0 shows an empty node of its own for each stretch of such t.
    """
    levels = tree_depth(horizon)
    encoder, columns = [], {}
    decoder = np.zeros((horizon + 1, 0))
    for t in range(horizon + 1):
        for level in range(levels):
            stretch = t >> level
            if stretch & 1:
                key, covered = (level, stretch), slice((stretch - 1) << level, stretch << level)
            elif idle:
                key, covered = (level, stretch), slice(0, 0)
            else:
                continue
            if key not in columns:
                columns[key] = len(encoder)
                row = np.zeros(horizon)
                row[covered] = 1.0
                encoder.append(row)
                decoder = np.hstack([decoder, np.zeros((horizon + 1, 1))])
            decoder[t, columns[key]] = 1.0
    return np.array(encoder), decoder, list(columns)


@pytest.mark.parametrize("form", IDLE)
def test_a_constant_noise_tree_counts_the_draws_that_stand(form: str) -> None:
    horizon = 2**12
    streamed = StreamedTree(horizon, idle=IDLE[form], draw=lambda: 1.0)
    for t in range(horizon + 1):
        expected = tree_depth(horizon) if IDLE[form] else t.bit_count()
        assert streamed.release == expected, t
        if t < horizon:
            streamed.add(0.0)


@pytest.mark.parametrize("form", IDLE)
@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 33, 100])
def test_without_noise_every_release_is_the_prefix_sum(form: str, horizon: int) -> None:
    rows = np.arange(1.0, horizon + 1)
    streamed = StreamedTree(horizon, idle=IDLE[form], draw=lambda: 0.0)
    releases = [streamed.add(row) for row in rows]
    np.testing.assert_array_equal(releases, np.cumsum(rows))


@pytest.mark.parametrize("form", IDLE)
@pytest.mark.parametrize("horizon", [1, 2, 5, 16, 37, 64])
def test_streaming_equals_the_dense_matrices(form: str, horizon: int) -> None:
    rng = np.random.default_rng(horizon)
    rows = rng.normal(size=horizon)
    drawn: list[float] = []

    def draw() -> float:
        drawn.append(100 * rng.normal())
        return drawn[-1]

    streamed = StreamedTree(horizon, idle=IDLE[form], draw=draw)
    releases = [streamed.release, *(streamed.add(row) for row in rows)]
    encoder, decoder, keys = materialize(horizon, idle=IDLE[form])
    noise = draws_by_node(horizon, drawn, idle=IDLE[form])
    dense = decoder @ (encoder @ rows + np.array([noise[key] for key in keys]))
    np.testing.assert_allclose(releases, dense, rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", IDLE)
@pytest.mark.parametrize("horizon", [1, 6, 32, 50])
def test_replacing_one_row_changes_at_most_m_nodes_each_by_that_row(
    form: str, horizon: int
) -> None:
    encoder, *_ = materialize(horizon, idle=IDLE[form])
    assert set(np.unique(encoder)) <= {0.0, 1.0}
    assert (encoder.sum(axis=0) <= tree_depth(horizon)).all()


@pytest.mark.parametrize("form", IDLE)
def test_a_replaced_row_enters_at_most_one_node_a_level_once(form: str) -> None:
    # The same through the kernel: two streams that differ in one row and share all draws.
    horizon = 32
    for replaced in range(horizon):
        zeros = StreamedTree(horizon, idle=IDLE[form], draw=lambda: 0.0)
        other = StreamedTree(horizon, idle=IDLE[form], draw=lambda: 0.0)
        generation = np.zeros(zeros.levels, dtype=int)
        changed: set[tuple[int, int]] = set()
        for t in range(horizon):
            zeros.add(0.0)
            other.add(1.0 if t == replaced else 0.0)
            generation[: tree.carry(t + 1, zeros.levels)] += 1
            differs = (other.nodes - zeros.nodes)[:, 0]
            assert set(np.unique(differs)) <= {0.0, 1.0}
            changed |= {(level, generation[level]) for level in np.flatnonzero(differs)}
            assert (other.idle == zeros.idle).all()
        levels = [level for level, _ in changed]
        assert len(levels) == len(set(levels)) <= zeros.levels


@pytest.mark.parametrize("form", IDLE)
def test_consecutive_releases_never_share_all_their_noise(form: str) -> None:
    # If they did, their difference would be one person's row exactly. With all rows zero, the
    # difference of consecutive releases must always hold fresh noise.
    horizon = 2**10
    rng = np.random.default_rng(0)
    streamed = StreamedTree(horizon, idle=IDLE[form], draw=rng.normal)
    before = streamed.release
    for _ in range(horizon):
        after = streamed.add(0.0)
        assert abs(after - before) > 1e-9
        before = after


@pytest.mark.parametrize("form", IDLE)
def test_a_node_keeps_its_noise_for_as_long_as_it_stands(form: str) -> None:
    # Draws are distinct powers of two: a release's binary digits are the draws in it. A draw
    # that has left a release never comes back.
    horizon = 16
    exponent = iter(range(53))
    if IDLE[form]:
        horizon = 8
    streamed = StreamedTree(horizon, idle=IDLE[form], draw=lambda: 2.0 ** next(exponent))
    gone: set[int] = set()
    present: set[int] = set()
    for t in range(horizon + 1):
        bits = int(streamed.release)
        now = {i for i in range(53) if bits >> i & 1}
        assert not now & gone
        gone |= present - now
        present = now
        if t < horizon:
            streamed.add(0.0)


def test_the_state_at_rest_holds_no_exact_sum() -> None:
    # Pan-private: every node carries its own draw from the moment it opens.
    horizon = 64
    streamed = StreamedTree(horizon, idle=True, draw=lambda: 1e6)
    for t in range(horizon):
        streamed.add(1.0)
        assert (streamed.nodes >= 1e6).all(), t
        assert (streamed.idle == 1e6).all()
        assert (streamed.totals[:-1] >= 1e6).all()


def test_without_levels_the_sum_is_exact() -> None:
    nodes = np.zeros((0, 2))
    totals = np.zeros((1, 2))
    clock = np.zeros(1, dtype=np.int64)
    tree.begin(nodes, nodes, totals, np.empty((0, 2)))
    for _ in range(5):
        tree.step(nodes, nodes, totals, clock, np.array([1.0, 2.0]), np.empty((0, 2)), 9)
    assert totals.tolist() == [[5.0, 10.0]]
    assert clock.tolist() == [5]
