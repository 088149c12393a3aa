"""A simulation as tables of plain numbers, the form in which `rounds.cu` takes it.

All that depends on public numbers alone is worked out here, by the package's own kernels: when
there is a release, the filter's gains, how much noise a release holds, the numbers of tilts.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import beta, betainc, betaincinv

from discreet.errors import ParameterError
from discreet.kernels import _arms as arms
from discreet.kernels import _posterior as posterior
from discreet.kernels import _random as random
from discreet.kernels import _schedule as schedule
from discreet.kernels import _sums as sums
from discreet.kernels import _windows as windows
from discreet.release.policies import PosteriorUCB, Thompson
from discreet.simulation._simulate import Simulation, streams
from discreet.simulation.environments import World

F64 = NDArray[np.float64]
F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

RADIUS, WIDTH, POSTERIOR = range(3)  # RULE in rounds.cu
LARGEST_DIM = 64  # what fits into the registers of a thread and the memory of a block,
LARGEST_WISHART = 60  # which with Wishart noise holds two factors more
SMALL_DIM = 8  # up to here a replicate needs no block of its own
MOST_TABLED = 4_000_000  # releases that have a row in a table
MOST_ROUNDS = 2**40  # so that no number of a stream is used twice
_CELLS = 128  # BAND_CELLS in rounds.cu

# The fields of `Setting` in rounds.cu. Addresses come last, each with the type that is there.
_NUMBERS = (
    *("shift", "floor", "noise_scale", "log_offset", "bias", "optimism"),
    *("scale", "moment_scale", "dof", "variance", "theta_norm", "prior", "square"),
    *("deviations", "growth", "dither", "uniform", "reward_std", "reward_bound"),
    *("top", "low", "high"),
)
_COUNTS = ("last", "levels", "idle", "halvings", "groups", "buffers", "first_due")
ADDRESSES = {
    "checkpoints": "i64",
    "releases": "double",
    "tilts": "float",
    "band": "float",
    "mixture": "double",
    "spread": "float",
}
SETTING = np.dtype(
    [(name, np.float64) for name in _NUMBERS]
    + [(name, np.int64) for name in _COUNTS]
    + [(name, np.uint64) for name in ADDRESSES]
)
# Columns of the table of releases.
_COLUMNS = (
    *("DUE", "KEPT", "ENLARGED", "GAIN", "LAG_GAIN", "HELD", "SIZE"),
    *("GRAM_STD", "MOMENT_STD", "WEIGHT", "HEAVIEST", "REACH", "LOG_TAIL", "BONUS"),
)
COLUMNS = len(_COLUMNS)
_AMOUNTS = _COLUMNS.index("GRAM_STD")  # from here on they say how much noise there is

DECLARATIONS = f"""
typedef unsigned long long u64;
typedef long long i64;
struct Setting {{
    double {", ".join(_NUMBERS)};
    i64 {", ".join(_COUNTS)};
    {" ".join(f"const {kind}* {name};" for name, kind in ADDRESSES.items())}
}};
enum {{ {", ".join(_COLUMNS)}, COLUMNS }};
"""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What `rounds.cu` is compiled for, but for the lanes; the names of its macros in capitals.

    Attributes:
        dim: features of an action.
        actions: in a decision set.
        rule: RADIUS, WIDTH or POSTERIOR.
        sharing: how noise is shared, as `kernels._sums` has it.
        world: what decision sets are made of, as `kernels._arms` has it.
        wishart: whether noise is Wishart.
        sampling: whether a parameter is drawn in every round.
        every_round: whether every row makes a release.
    """

    dim: int
    actions: int
    rule: int
    sharing: int
    world: int
    wishart: bool
    sampling: bool
    every_round: bool

    @property
    def packed(self) -> int:
        """How many numbers a packed Gram matrix and moment are."""
        return (self.dim + 1) * (self.dim + 2) // 2 - 1

    @property
    def tabled(self) -> bool:
        """Whether releases need a table: not where each is like the one before."""
        return not self.every_round or (self.rule != RADIUS and self.sharing != sums.NO_NOISE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """One setting, ready for the device.

    Attributes:
        shape: what has to be compiled for it.
        record: its fields, of the type `SETTING`; addresses are filled in by whoever has them.
        tables: what those addresses point to.
        kept: how many numbers of noise a replicate keeps between releases.
        simulation: what it was made of.
        checkpoints: rounds at which the regret is recorded.
    """

    shape: Shape
    record: NDArray[Any]
    tables: dict[str, NDArray[Any]] = field(repr=False)
    kept: int
    simulation: Simulation
    checkpoints: I64

    @property
    def rounds(self) -> int:
        """How many rounds are played."""
        return int(self.checkpoints[-1])


def plan(simulation: Simulation, checkpoints: I64) -> Plan:
    """What a simulation is on the device.

    Args:
        simulation: what to play.
        checkpoints: rounds at which the regret is recorded; play ends at the last one.

    Returns:
        The plan.

    Raises:
        ParameterError: the device cannot play this.
    """
    world = simulation.environment.start(np.random.SeedSequence(0))
    shape = _shape(simulation, world)
    rounds = int(checkpoints[-1])
    _require(rounds <= MOST_ROUNDS, "rounds", f"is {rounds}; on a GPU give at most 2**40")
    record = np.zeros(1, SETTING)
    for name, value in _fields(simulation, world).items():
        record[name] = value
    record["last"] = rounds
    sharing = simulation.mechanism.sharing
    mixture = np.concatenate([sharing.decays, sharing.weights])
    kept = {
        sums.TREE: max(1, sharing.levels) * shape.packed,
        sums.BUFFERS: (len(sharing.decays) + 1) * shape.packed,
        sums.WINDOWS: 3 * shape.packed,
    }
    tables = {
        "checkpoints": np.ascontiguousarray(checkpoints, np.int64),
        "mixture": mixture if mixture.size else np.zeros(1),
        "spread": np.append(world.arrays.groups.spread, 0.0).astype(np.float32),
        "band": _band_table(shape, world),
        **_release_tables(simulation, shape, rounds),
    }
    return Plan(
        shape=shape,
        record=record,
        tables=tables,
        kept=kept.get(sharing.kind, 1),
        simulation=simulation,
        checkpoints=np.asarray(checkpoints, np.int64),
    )


def _require(holds: bool, parameter: str, advice: str) -> None:  # noqa: FBT001  # a sentence
    if not holds:
        raise ParameterError(parameter, advice)


def _shape(simulation: Simulation, world: World) -> Shape:
    mechanism, policy = simulation.mechanism, simulation.policy
    rule = POSTERIOR if isinstance(policy, PosteriorUCB) else WIDTH
    if rule == WIDTH and mechanism.bounds is not None:
        rule = RADIUS
    dim = simulation.environment.problem.dim
    if world.arrays.kind == arms.SAME and rule != POSTERIOR:
        _require(
            _alike(world.arrays.actions),
            "device",
            "is 'cuda', where fixed actions are of one length for UCB and Thompson; use cpu",
        )
    _require(
        world.arrays.drift.kind == arms.STILL, "device", "is 'cuda', where no world drifts; use cpu"
    )
    _require(
        world.arrays.kind in {arms.SAME, arms.BAND, arms.CLUSTERS},
        "device",
        "is 'cuda', where no recorded world is played; use cpu",
    )
    _require(
        mechanism.sharing.kind != sums.MATRIX,
        "device",
        "is 'cuda', where noise is not shared through a matrix written out; use cpu",
    )
    _require(
        len(mechanism.setting.problem.blocks) == 1,
        "device",
        "is 'cuda', where features are not in blocks; use cpu",
    )
    _require(
        dim <= LARGEST_DIM, "dim", f"is {dim}; on a GPU give at most {LARGEST_DIM}, or use cpu"
    )
    wishart = mechanism.law.dof > 0.0
    _require(
        not wishart or dim <= LARGEST_WISHART,
        "dim",
        f"is {dim}; with Wishart noise on a GPU give at most {LARGEST_WISHART}, or use cpu",
    )
    return Shape(
        dim=dim,
        actions=simulation.environment.n_actions,
        rule=rule,
        sharing=mechanism.sharing.kind,
        world=world.arrays.kind,
        wishart=wishart,
        sampling=isinstance(policy, Thompson),
        every_round=mechanism.schedule.every_round,
    )


def _alike(actions: F64) -> bool:
    """Whether all actions, shape (d, K), have one length, so that none is best before any row."""
    squares = (actions**2).sum(axis=0)
    return bool(np.allclose(squares, squares[0], rtol=1e-6))


def _fields(simulation: Simulation, world: World) -> dict[str, float]:
    """All fields of a setting but its length and the addresses."""
    mechanism, policy, arrays = simulation.mechanism, simulation.policy, world.arrays
    sharing, law, band = mechanism.sharing, mechanism.law, arrays.band
    found = {
        "scale": law.scale,
        "moment_scale": law.moment_scale,
        "dof": law.dof,
        "reward_std": arrays.reward_std,
        "reward_bound": arrays.reward_bound,
        "top": band.top,
        "low": band.low,
        "high": band.high,
        "levels": sharing.levels,
        "idle": sharing.idle,
        "groups": arrays.groups.number,
        "buffers": len(sharing.decays),
        "first_due": mechanism.schedule.after(0),
    }
    if isinstance(policy, PosteriorUCB):
        known = mechanism.posterior_terms._asdict()
        del known["firsts"]
        found |= known
        return found | policy.numbers(mechanism)._asdict()
    found["optimism"] = float(policy.optimism)
    if mechanism.bounds is None:
        return found | mechanism.width_terms._asdict()
    scale, offset, bias = mechanism.radius_terms
    found |= {"shift": mechanism.shift, "floor": mechanism.bounds.rho_min}
    return found | {"noise_scale": scale, "log_offset": offset, "bias": bias}


def _release_tables(simulation: Simulation, shape: Shape, rounds: int) -> dict[str, NDArray[Any]]:
    """A row for each release, and the normals of its tilts."""
    nothing: dict[str, NDArray[Any]] = {
        "releases": np.zeros((1, COLUMNS)),
        "tilts": np.zeros(1, np.float32),
    }
    if not shape.tabled:
        return nothing
    mechanism, policy = simulation.mechanism, simulation.policy
    count = mechanism.schedule.count(rounds)
    if count == 0:
        return nothing
    _require(
        count <= MOST_TABLED,
        "rounds",
        f"is {rounds}, with {count:,} releases; on a GPU this mechanism can have at most "
        f"{MOST_TABLED:,}: give fewer rounds, or use cpu",
    )
    timing, known = mechanism.schedule.timing, mechanism.sharing.filter
    times = schedule.times(timing, count + 1)
    table = np.zeros((count, COLUMNS))
    table[:, 0] = times[1:]
    table[:, _AMOUNTS:] = _amounts(simulation, shape, times[:-1])
    if shape.sharing == sums.WINDOWS:
        table[:, 1:_AMOUNTS] = windows.course(known, timing, count)[:, : windows.COURSE_SPREAD]
    if not isinstance(policy, PosteriorUCB):
        return {**nothing, "releases": table}
    normals = posterior.tilt_normals(count, shape.dim)
    return {"releases": table, "tilts": normals.astype(np.float32)}


def _amounts(simulation: Simulation, shape: Shape, times: I64) -> F64:
    """How much noise releases hold and what is made of it: the last seven columns."""
    mechanism, policy = simulation.mechanism, simulation.policy
    timing, known, law = mechanism.schedule.timing, mechanism.sharing.filter, mechanism.law
    found = np.zeros((len(times), 7))
    gram_std, moment_std, weight, heaviest, reach, log_tail, bonus = found.T
    numbers = np.arange(1, len(times) + 1)
    weight[:], heaviest[:] = times, 1.0
    spreads = np.zeros(len(times))
    if shape.rule == WIDTH:
        table = mechanism.noise_table
        at = np.minimum(np.searchsorted(table.numbers, numbers), len(table.numbers) - 1)
        spreads, log_tail[:] = table.norms[at], table.log_tails[at]
        if shape.sharing == sums.WINDOWS:
            heaviest[:] = [windows.largest_weight(known, timing, int(n)) for n in numbers]
        spreads = spreads / heaviest
        reach[:] = spreads * law.scale * table.reaches[at]
    elif shape.sharing == sums.WINDOWS:
        course = windows.course(known, timing, len(times))
        spreads, weight[:] = course[:, windows.COURSE_SPREAD], course[:, windows.COURSE_WEIGHT]
    elif shape.sharing != sums.NO_NOISE:
        some, norms = mechanism.spreads
        spreads = norms[np.minimum(np.searchsorted(some, numbers), len(some) - 1)]
    gram_std[:], moment_std[:] = spreads * law.scale, spreads * law.moment_scale
    if isinstance(policy, PosteriorUCB):
        counted = np.minimum(times, known.memory)
        deviations, growth, *_ = policy.numbers(mechanism)
        bonus[:] = [posterior.bonus(deviations, growth, rows, shape.dim) for rows in counted]
    return found


def _band_table(shape: Shape, world: World) -> F32:
    """Cubics of the inverse distribution function of an action's product with theta, (cells, 4).

    Half of one plus the product of a uniform unit vector with theta is a Beta variable; a band is
    a part of its range. Cubics have its values and slopes at the ends of equally probable cells.
    """
    if shape.world != arms.BAND or shape.dim > SMALL_DIM:
        return np.zeros((1, 4), np.float32)
    half, band = 0.5 * (shape.dim - 1), world.arrays.band
    low, high = (betainc(half, half, 0.5 * (1 + end)) for end in (band.low, band.high))
    shares = low + (high - low) * np.arange(_CELLS + 1) / _CELLS
    halves = betaincinv(half, half, shares)
    density = (halves * (1 - halves)) ** (half - 1) / beta(half, half) / 2
    values, slopes = 2 * halves - 1, (high - low) / _CELLS / density
    values[0], values[-1] = band.low, band.high
    rise, first, last = np.diff(values), slopes[:-1], slopes[1:]
    columns = (values[:-1], first, 3 * rise - 2 * first - last, first + last - 2 * rise)
    return np.column_stack(columns).astype(np.float32)


def seed_numbers(found: Plan, seed: int) -> tuple[U64, F32]:
    """A seed's three streams, shape (6,), and what the device has to know of its world.

    Both are those of `run_seed`.
    """
    environment: Any = found.simulation.environment
    if isinstance(environment, Hashable):
        return _seed_numbers(environment, seed)
    return _seed_numbers.__wrapped__(environment, seed)


@lru_cache(maxsize=2**17)  # settings mostly differ in other things than the world
def _seed_numbers(environment: Any, seed: int) -> tuple[U64, F32]:  # noqa: ANN401  # an Environment
    world_seed, noise_seed, policy_seed = streams(seed)
    world = environment.start(world_seed)
    states = (world.state, random.seed_state(noise_seed), random.seed_state(policy_seed))
    return np.concatenate(states), _world_memory(world)


def _world_memory(world: World) -> F32:
    arrays = world.arrays
    known: list[NDArray[Any]]
    if arrays.kind == arms.SAME:
        means = arrays.means.astype(np.float32)
        known = [arrays.actions.ravel(), means, means.max(keepdims=True)]
    elif arrays.kind == arms.CLUSTERS:
        known = [arrays.groups.centres.ravel(), arrays.theta]
    else:
        known = [arrays.theta]
    return np.concatenate(known).astype(np.float32)
