"""The GPU's source, compiled for a processor, beside the package: the same law, the same seeds."""

import math
import re
import threading
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_device import Host, HostLaunch, HostStream
from numpy.typing import NDArray

from discreet import Privacy
from discreet.errors import BackendError, ParameterError
from discreet.mechanism.variants import calibrate, named
from discreet.release.policies import UCB, PosteriorUCB, Thompson
from discreet.simulation import Simulation, run_seed, simulate
from discreet.simulation._cuda import _runtime as runtime
from discreet.simulation._cuda._batch import Batch, Replicates, lanes_for, macros
from discreet.simulation._cuda._plan import (
    DECLARATIONS,
    LARGEST_DIM,
    LARGEST_WISHART,
    POSTERIOR,
    RADIUS,
    WIDTH,
    Plan,
    Shape,
    plan,
)
from discreet.simulation._cuda._play import Group, grouped, play, played
from discreet.simulation.environments import (
    GAUSSIAN,
    Basis,
    Clusters,
    Drifting,
    Environment,
    Fixed,
    Sphere,
    World,
)

ROUNDS = 300
CHECKPOINTS = np.array([1, 10, 100, ROUNDS])
FAR = 5.5  # standard errors: 4e-8 for each of fewer than 100 comparisons, below 1e-5 together
SPHERE = Sphere(dim=3, n_actions=5, gap=0.1)
CASES = {
    "windows": (SPHERE, None),
    "tight": (Fixed(dim=3, n_actions=5), None),
    "gaussian": (SPHERE, None),
    "wishart": (Basis(dim=3), None),
    "nonprivate": (Sphere(dim=3, n_actions=5, rewards=GAUSSIAN), None),
    "LinUCB": (Clusters(dim=3, n_actions=5), UCB()),
    "rewards alone": (SPHERE, None),
    "a memory": (SPHERE, None),
}
MORE_CASES = {
    "rewards alone, tight": (Clusters(dim=3, n_actions=5), None),
    "a tree and the posterior": (Basis(dim=3), PosteriorUCB()),
    "Thompson": (SPHERE, Thompson()),
    "many features": (Sphere(dim=9, n_actions=6), UCB()),
    "windows of many features": (Sphere(dim=10, n_actions=6), None),
}
VARIANTS = {
    "LinUCB": "nonprivate",
    "Thompson": "gaussian",
    "many features": "nonprivate",
    "windows of many features": "windows",
    "rewards alone": "windows",
    "rewards alone, tight": "tight",
    "a memory": "windows",
    "a tree and the posterior": "gaussian",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "rewards alone": {"protects": "rewards", "epsilon": 2.0},
    "rewards alone, tight": {"protects": "rewards", "epsilon": 2.0},
    "a memory": {"memory": 20},
}


def simulation(
    name: str,
    world: Environment = SPHERE,
    policy: PosteriorUCB | UCB | Thompson | None = None,
    *,
    tree: str | None = None,
    rounds: int = ROUNDS,
    epsilon: float = 20.0,
    protects: str = "rows",
    memory: int | None = None,
) -> Simulation:
    row = named(name) if tree is None else named(name).with_tree(tree)
    epsilon = 1.0 if name == "wishart" else epsilon
    privacy = Privacy(epsilon=epsilon, delta=0.1, protects=protects) if row.private else None
    mechanism = calibrate(row, world.problem, horizon=rounds, privacy=privacy, memory=memory)
    return Simulation(environment=world, mechanism=mechanism, rounds=rounds, policy=policy)


def batch(found: Plan, seeds: range, *parts: int) -> Batch:
    made = Batch(Host(), [Replicates(plan=found, seeds=seeds)], lanes=1)
    for rounds in parts:
        made.advance(rounds)
    return made


@pytest.mark.parametrize(
    "name", [*CASES, *(pytest.param(name, marks=pytest.mark.nightly) for name in MORE_CASES)]
)
def test_regret_is_that_of_the_package_within_chance(name: str) -> None:
    world, policy = {**CASES, **MORE_CASES}[name]
    what = simulation(VARIANTS.get(name, name), world, policy, **OPTIONS.get(name, {}))
    found = batch(plan(what, CHECKPOINTS), range(5_000, 7_000), ROUNDS).regrets()[0]
    known = np.array([run_seed(what, seed, CHECKPOINTS) for seed in range(500)])
    apart = found.mean(axis=0) - known.mean(axis=0)
    error = np.hypot(*(one.std(axis=0, ddof=1) / np.sqrt(len(one)) for one in (found, known)))
    assert (np.abs(apart) < FAR * error).all()


def test_a_run_in_parts_is_the_run_in_one_go() -> None:
    for name in ("windows", "gaussian"):
        found = plan(simulation(name), CHECKPOINTS)
        at_once = batch(found, range(20), ROUNDS).regrets()[0]
        in_parts = batch(found, range(20), 1, 13, 150, ROUNDS).regrets()[0]
        np.testing.assert_array_equal(at_once, in_parts)
        assert at_once.std(axis=0)[-1] > 0.0


def shown(found: Plan, seeds: range) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the last release shows, and the sums of rows since the last that takes them."""
    made = batch(found, seeds, found.rounds)
    size = found.shape.packed
    state = made._arguments[3].read(np.float64, (2 * size + 5, len(seeds)))
    return state[:size], state[size : 2 * size]


def scaled(found: Plan, factor: float) -> Plan:
    """The same with noise of another scale, which the policy does not know of."""
    record = found.record.copy()
    record["scale"] *= factor
    record["moment_scale"] *= factor
    return replace(found, record=record)


@pytest.mark.parametrize(
    ("name", "tree"),
    [("gaussian", "pan-private"), ("gaussian", "covering"), ("tight", None), ("windows", None)],
)
def test_noise_has_its_deviation_and_four_percent_more_or_less_is_found(
    name: str, tree: str | None
) -> None:
    # All choices are uniform, so rows do not depend on noise and the difference is noise alone.
    what = simulation(name, policy=PosteriorUCB(uniform=1.0), tree=tree, rounds=127)
    found, seeds = plan(what, np.array([127])), range(3_000)
    rows = shown(scaled(found, 0.0), seeds)[1]
    column = {"gram": 7, "moment": 8}
    stds = {key: found.tables["releases"][-1, at] for key, at in column.items()}
    diagonal = np.array([0, 2, 5])
    deviations = np.full(found.shape.packed, stds["gram"])
    deviations[diagonal] *= np.sqrt(2.0)
    deviations[-3:] = stds["moment"]
    for factor, alike in ((1.0, True), (0.96, False), (1.04, False)):
        noise = (shown(scaled(found, factor), seeds)[1] - rows) / deviations[:, None]
        square = (noise**2).sum()
        assert (abs(square - noise.size) < FAR * np.sqrt(2 * noise.size)) == alike
        assert abs(noise.mean()) < FAR / np.sqrt(noise.size) * factor


def test_where_rewards_alone_are_protected_only_their_sums_have_noise() -> None:
    uniform = PosteriorUCB(uniform=1.0)
    for name in ("windows", "tight"):
        what = simulation(name, policy=uniform, rounds=127, protects="rewards", epsilon=2.0)
        found, seeds = plan(what, np.array([127])), range(8_000)
        noise = shown(found, seeds)[1] - shown(scaled(found, 0.0), seeds)[1]
        np.testing.assert_array_equal(noise[:-3], 0.0)
        of_moment = noise[-3:] / found.tables["releases"][-1, 8]
        for factor, alike in ((1.0, True), (0.96, False), (1.04, False)):
            square = ((factor * of_moment) ** 2).sum()
            assert (abs(square - of_moment.size) < FAR * np.sqrt(2 * of_moment.size)) == alike


def test_a_memory_shows_fewer_rows() -> None:
    uniform = PosteriorUCB(uniform=1.0)
    for memory, least, most in ((None, 80.0, 127.0), (20, 20.0, 60.0)):
        what = simulation("windows", policy=uniform, rounds=127, memory=memory)
        found = plan(what, np.array([127]))
        rows = shown(scaled(found, 0.0), range(3))[1]
        weight = found.tables["releases"][-1, 9]
        assert least < weight < most
        np.testing.assert_allclose(rows[[0, 2, 5]].sum(axis=0), weight, rtol=1e-5)


def test_wishart_noise_has_its_mean_and_its_deviation() -> None:
    what = simulation("wishart", Basis(dim=3), rounds=127)
    found, seeds = plan(what, np.array([127])), range(4_000)
    rows, total = shown(found, seeds)
    law, levels = what.mechanism.law, what.mechanism.levels
    dof = law.dof * levels
    diagonal, off = np.array([0, 2, 5]), np.array([1, 3, 4, 6, 7, 8])
    on = (total - rows)[diagonal] / law.scale
    across = (total - rows)[off] / law.scale
    for factor, alike in ((1.0, True), (0.96, False), (1.04, False)):
        square = ((factor * across) ** 2).mean()
        assert (abs(square / dof - 1) < FAR * np.sqrt(2 / across.size)) == alike
    assert abs(on.mean() - dof) < FAR * np.sqrt(2 * dof / on.size)
    assert abs((on - dof).var() / (2 * dof) - 1) < FAR * np.sqrt(2 / on.size)


def test_all_seeds_are_played_in_batches_and_progress_is_told() -> None:
    told: list[int] = []
    what = simulation("gaussian", rounds=20)
    seeds, regrets = played(Host(), what, range(600), on_seed=told.append)
    assert seeds == list(range(600))
    assert regrets.shape == (600, len(what.checkpoints()))
    assert told == sorted(told)
    assert told[-1] == 600


def test_an_interrupt_keeps_what_is_finished() -> None:
    def interrupt(done: int) -> None:
        if done > 500:
            raise KeyboardInterrupt

    what = simulation("gaussian", rounds=20)
    seeds, regrets = played(Host(), what, range(600), on_seed=interrupt)
    assert seeds == list(range(512))
    assert len(regrets) == 512
    with pytest.raises(KeyboardInterrupt):
        played(Host(), what, range(20), on_seed=lambda done: interrupt(done + 1_000))


class Unended(HostLaunch):
    """A launch that ends when somebody waits for it."""

    done = False

    def span(self) -> tuple[float, float]:
        self.done = True
        return super().span()


class Queueing(Host):
    """Nothing ends by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[Unended] = []

    def stream(self, rank: int) -> HostStream:
        own = super().stream(rank)
        own.launch = self._launch  # type: ignore[method-assign]
        return own

    def _launch(self, *_: Any) -> Unended:  # noqa: ANN401
        self.launches.append(Unended())
        return self.launches[-1]


def test_after_an_interrupt_nobody_still_writes_to_the_devices_memory() -> None:
    def interrupt(_: float) -> None:
        if len(device.launches) == 2:
            raise KeyboardInterrupt

    device = Queueing()
    made = plan(simulation("gaussian", rounds=30), np.array([30_000]))
    running = play(device, [Replicates(plan=made, seeds=range(2))], on_share=interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(running)
    assert len(device.launches) == 2  # one is played, and the next one waits behind it
    assert device.launches[-1].done


class Slow(Host):
    """Takes its time but for Wishart noise; knows what it was asked to compile."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, int] = {}
        self.interrupted = threading.Event()

    def compiled(self, macros: dict[str, int]) -> Any:  # noqa: ANN401  # as in Host
        self.asked[repr(macros)] = macros["WISHART"]
        if not macros["WISHART"]:
            self.interrupted.wait(60)
        return super().compiled(macros)


def test_the_longest_run_is_compiled_first_and_after_an_interrupt_nothing_more_is() -> None:
    names = ("gaussian", "tight", "windows", "nonprivate", "wishart")
    wanted = [
        Replicates(plan=plan(simulation(name, rounds=30), np.array([30])), seeds=range(2))
        for name in names
    ]
    device, others = Slow(), set(threading.enumerate())
    running = play(device, wanted)
    assert wanted[next(running)[0]].plan.shape.wishart
    running.close()
    device.interrupted.set()
    for thread in set(threading.enumerate()) - others:
        thread.join(60)
    assert next(iter(device.asked.values())) == 1
    assert len(device.asked) < len(names)


def test_few_replicates_take_many_lanes() -> None:
    shape = plan(simulation("gaussian"), CHECKPOINTS).shape
    counts = (1, 1_000, 2_000, 4_000, 8_000, 16_000, 64_000)
    assert [lanes_for(shape, count, 132) for count in counts] == [32, 32, 16, 8, 4, 2, 1]
    many_features = replace(shape, dim=20)
    assert [lanes_for(many_features, count, 132) for count in (1, 64_000)] == [128, 64]
    many_actions = replace(many_features, actions=400)
    assert [lanes_for(many_actions, count, 132) for count in (1, 64_000)] == [512, 64]
    assert lanes_for(replace(many_features, dim=33), 64_000, 132) == 128


def groups_of(*settings: tuple[str, int, int]) -> list[Group]:
    """How replicates of variants are grouped: each with its rounds and its number of seeds."""
    wanted = [
        Replicates(
            plan=plan(simulation(name, rounds=rounds), np.array([rounds])), seeds=range(count)
        )
        for name, rounds, count in settings
    ]
    return grouped(SimpleNamespace(processors=132), wanted)  # type: ignore[arg-type]  # all it needs


def test_the_longest_runs_have_a_group_of_their_own_and_more_lanes() -> None:
    groups = groups_of(("gaussian", 100, 8_000), ("gaussian", 250, 1_000), ("tight", 100, 500))
    sizes = [(one.rounds, one.replicates) for one in groups]
    assert sizes == [(250, 1_000), (100, 8_000), (100, 500)]
    assert [one.lanes for one in groups] == [16, 4, 4]  # 4,400 runs as long as the longest
    assert [one.lanes for one in groups_of(("gaussian", 100, 4_400))] == [4]


ROOM = re.compile(r"^ {4}(FAR_)?ROOM\((\w+), \w+, (.*?)(?:, [^,]*)?\);", re.MULTILINE)


def shared(made: Shape) -> int:
    """Bytes of what the threads of a replicate have in common, by the declarations in rounds.cu."""
    known = {
        "DIM": made.dim,
        "COLUMN": math.ceil(made.dim / 4) * 4,
        "PACKED": made.packed,
        "BIG": made.dim > 8,
        "RULE": made.rule,
        "RADIUS": RADIUS,
        "POSTERIOR": POSTERIOR,
        "WISHART": made.wishart,
    }
    rooms = ROOM.findall(runtime.source())
    assert len(rooms) == 13
    if not known["BIG"]:  # the last four are of shapes with many features
        return sum(bytes_of(kind, count, known) for _, kind, count in rooms[:-4])
    return sum(bytes_of(kind, count, known) for far, kind, count in rooms if not far)


def bytes_of(kind: str, count: str, known: dict[str, int]) -> int:
    return math.ceil(count_of(count, known) * {"double": 8, "float": 4}[kind] / 16) * 16


def test_replicates_of_a_block_have_room_in_what_its_threads_share() -> None:
    shape = plan(simulation("windows"), CHECKPOINTS).shape
    for dim, rule, wishart in product((2, 5, 8), (RADIUS, WIDTH, POSTERIOR), (False, True)):
        made = replace(shape, dim=dim, rule=rule, wishart=wishart)
        for lanes in (2, 4, 8, 16, 32):
            threads = macros(made, lanes)["BLOCK"]
            assert threads % lanes == 0
            assert threads // lanes * shared(made) <= 48 * 1024
            assert threads == 128 or 2 * threads // lanes * shared(made) > 48 * 1024
    for wishart, most in ((True, LARGEST_WISHART), (False, LARGEST_DIM)):
        for dim, rule in product((9, 32, most), (RADIUS, WIDTH, POSTERIOR)):
            assert shared(replace(shape, dim=dim, rule=rule, wishart=wishart)) <= 47 * 1024


def count_of(text: str, known: dict[str, int]) -> int:
    """The value of a count in rounds.cu, such as ``RULE == RADIUS ? 1 : DIM * DIM``."""
    test, *branches = re.split(r" [?:] ", text)
    chosen = test if not branches else branches[0 if eval(test, {}, dict(known)) else 1]  # noqa: S307  # the project's own source
    return int(eval(chosen, {}, dict(known)))  # noqa: S307  # as above


class Uneven(Fixed):
    """A world of one's own: its first action is shorter than the others."""

    def start(self, sequence: np.random.SeedSequence) -> World:
        world = super().start(sequence)
        world.arrays.actions[:, 0] *= 0.5
        return world


def test_what_a_gpu_cannot_play_is_refused_with_advice() -> None:
    drifting = simulation("windows", Drifting(world=SPHERE, flip=100))
    with pytest.raises(ParameterError, match="device: is 'cuda', where no world drifts; use cpu"):
        plan(drifting, CHECKPOINTS)
    longer = simulation("nonprivate", Uneven(dim=3, n_actions=5), UCB())
    with pytest.raises(ParameterError, match="device: is 'cuda', where fixed actions are of one"):
        plan(longer, CHECKPOINTS)
    plan(simulation("windows", Uneven(dim=3, n_actions=5)), CHECKPOINTS)
    with pytest.raises(ParameterError, match="dim: is 65; on a GPU give at most 64"):
        plan(simulation("nonprivate", Basis(dim=65)), CHECKPOINTS)
    with pytest.raises(ParameterError, match="dim: is 61; with Wishart noise on a GPU"):
        plan(simulation("wishart", Basis(dim=61)), CHECKPOINTS)
    with pytest.raises(ParameterError, match="device"):
        simulate(simulation("gaussian"), seeds=[0], device="tpu")


def test_without_a_gpu_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(BackendError, match=r"^device: cuda needs CuPy.*discreet\[cuda\]'$"):
        simulate(simulation("gaussian"), seeds=[0], device="cuda")


class Cupy:
    """What `_runtime` uses of CuPy, on a machine that has a GPU and no compiler for it."""

    def __init__(self, said: list[str]) -> None:
        self.cuda = self
        self.runtime = SimpleNamespace(
            getDeviceCount=lambda: 1, CUDARuntimeError=OSError, eventQuery=lambda _: self.status
        )
        self._said = said
        self.status = 0
        self.priorities: list[int] = []

    def Device(self) -> SimpleNamespace:  # noqa: N802  # CuPy's name
        return SimpleNamespace(
            attributes={"MultiProcessorCount": 132},
            use=lambda: None,
            synchronize=lambda: self._said.append("wait for the device"),
        )

    def Stream(self, *, priority: int, **_: bool) -> SimpleNamespace:  # noqa: N802  # as above
        self.priorities.append(priority)
        return SimpleNamespace()

    def Event(self) -> SimpleNamespace:  # noqa: N802  # as above
        def fail() -> None:
            raise OSError("an illegal address was met")

        return SimpleNamespace(record=lambda *_: None, ptr=0, synchronize=fail)

    def get_elapsed_time(self, start: object, end: object) -> float:
        raise NotImplementedError

    def get_current_stream(self) -> SimpleNamespace:
        return SimpleNamespace(synchronize=lambda: self._said.append("wait for what was sent"))

    def RawModule(self, **_: object) -> SimpleNamespace:  # noqa: N802  # as above
        def fail(name: str) -> None:
            raise RuntimeError(f"CuPy failed to load libnvrtc.so.13 for {name}")

        return SimpleNamespace(get_function=fail)


def test_without_nvidias_compiler_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", Cupy([]))
    with pytest.raises(BackendError, match=r"^device: cuda needs NVIDIA's compiler .*\[ctk\]'$"):
        simulate(simulation("gaussian"), seeds=[0], device="cuda")


def test_a_first_launch_waits_for_what_was_sent_and_not_for_other_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setitem(__import__("sys").modules, "cupy", Cupy(said))
    stream = runtime.Gpu().stream(0)
    for _ in range(2):
        stream.launch(lambda *_, **__: said.append("play"), 1, 128, ())
    assert said == ["wait for what was sent", "play", "play"]


def test_a_kernel_that_failed_ends_the_run_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = Cupy([])
    monkeypatch.setitem(__import__("sys").modules, "cupy", cupy)
    launch = runtime.Gpu().stream(0).launch(lambda *_, **__: None, 1, 128, ())
    assert launch.done
    cupy.status = 600  # what CUDA says while it is under way
    assert not launch.done
    cupy.status = 700
    with pytest.raises(OSError, match="illegal address"):
        launch.done  # noqa: B018  # asking is enough


def test_lower_ranks_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = Cupy([])
    monkeypatch.setitem(__import__("sys").modules, "cupy", cupy)
    device = runtime.Gpu()
    for rank in (0, 1, 4, 5, 50):
        device.stream(rank)
    assert cupy.priorities == [-5, -4, -1, 0, 0]  # for CUDA lower numbers go first


def test_the_source_stays_readable() -> None:
    assert runtime.source().removeprefix(DECLARATIONS).count("\n") <= 900
