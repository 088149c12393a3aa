"""Many rounds times many seeds, through the compiled loop.

A seed fixes everything: the world, its rewards, the noise and the policy's draws each have a
stream of their own, so results do not depend on how seeds are spread over workers.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from discreet import _blas
from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _linalg as linalg
from discreet.kernels import _random as random
from discreet.kernels import _rounds as rounds
from discreet.kernels import _sums as sums
from discreet.mechanism import Mechanism
from discreet.release import Release, policies
from discreet.release.policies import UCB, PosteriorUCB, Thompson
from discreet.simulation import _interruptible as interruptible
from discreet.simulation.environments import Environment, World

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

DEVICES = ("cpu", "cuda")


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What is played.

    Attributes:
        environment: where.
        mechanism: the learner's noise, releases and confidence sets.
        rounds: how many, at most the mechanism's horizon.
        policy: how a release becomes a choice; the mechanism's own if left out.
    """

    environment: Environment
    mechanism: Mechanism
    rounds: int
    policy: PosteriorUCB | UCB | Thompson = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        """Check that the horizon covers the rounds, and that the policy can be compiled."""
        given: object = self.policy
        if given is not None and not isinstance(given, PosteriorUCB | UCB | Thompson):
            raise ParameterError("policy", "must be a PosteriorUCB, UCB or Thompson in simulations")
        policy = policies.settled(given, self.mechanism)
        object.__setattr__(self, "policy", policy)
        if isinstance(policy, PosteriorUCB):
            _ = self.mechanism.posterior_terms  # or an error that says why not
        object.__setattr__(self, "rounds", checks.count("rounds", self.rounds))
        self.mechanism.require_playable()
        horizon = self.mechanism.setting.horizon
        if self.rounds > horizon:
            raise ParameterError(
                "rounds", f"is {self.rounds}, more than the horizon of {horizon}; give fewer rounds"
            )

    def checkpoints(self) -> I64:
        """Rounds at which the regret is recorded: 60 log-spaced and 100 evenly spaced."""
        even = np.linspace(0, self.rounds, 101)[1:]
        growing = np.geomspace(1, self.rounds, 60)
        return np.unique(np.rint(np.concatenate([even, growing])).astype(np.int64).clip(min=1))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Pseudo-regret over time, for each seed that was played.

    Attributes:
        simulation: what was played.
        asked: how many seeds were asked for; fewer were played if it was interrupted.
        seeds: which seeds were played, shape (S,).
        rounds: the checkpoints, shape (C,).
        regrets: pseudo-regret so far, shape (S, C).
        seconds: wall-clock time of all of it, compilation aside.
    """

    simulation: Simulation
    asked: int
    seeds: list[int]
    rounds: I64
    regrets: F64
    seconds: float

    @property
    def final(self) -> F64:
        """The pseudo-regret at the last round, per seed."""
        return self.regrets[:, -1]

    def mean(self) -> F64:
        """The mean over seeds, at each checkpoint."""
        return np.asarray(self.regrets.mean(axis=0))

    def stderr(self) -> F64:
        """Its standard error; NaN for a single seed."""
        count = len(self.regrets)
        if count == 1:
            return np.full(self.regrets.shape[1], np.nan)
        return np.asarray(self.regrets.std(axis=0, ddof=1) / np.sqrt(count))

    def to_json(self) -> dict[str, Any]:
        """What ``discreet simulate --json`` prints."""
        mean, stderr = self.mean(), self.stderr()
        return {
            "variant": self.simulation.mechanism.variant,
            "memory": self.simulation.mechanism.memory,
            "policy": _named(self.simulation.policy),
            "rounds": self.simulation.rounds,
            "seeds": len(self.seeds),
            "complete": len(self.seeds) == self.asked,
            "pseudo_regret": {
                "mean": float(mean[-1]),
                "stderr": None if np.isnan(stderr[-1]) else float(stderr[-1]),
                "worst": float(self.final.max()),
                "per_seed": [float(value) for value in self.final],
                "curve": [
                    [int(at), float(value)] for at, value in zip(self.rounds, mean, strict=True)
                ],
            },
            "rounds_per_second": self.simulation.rounds * len(self.seeds) / self.seconds,
            "guarantee": {
                **self.simulation.mechanism.guarantee.to_json(),
                "applies_to": "a LinUCB with this noise from the operating system; "
                "a simulation's own noise is seeded and protects nobody",
            },
        }


def _named(policy: PosteriorUCB | UCB | Thompson) -> dict[str, Any]:
    """The name of a policy, and its numbers."""
    numbers = policies.to_json(policy) or {}
    return {"name": numbers.pop("rule"), **numbers}


def run_seed(simulation: Simulation, seed: int, checkpoints: I64 | None = None) -> F64:
    """Play one seed from start to end.

    Args:
        simulation: what to play.
        seed: which world and which noise; a whole number from 0.
        checkpoints: rounds at which the regret is recorded, growing; play ends at the last one.
            They do not change what is played. The simulation's own if left out.

    Returns:
        The pseudo-regret so far at each checkpoint, shape (C,).

    Raises:
        ParameterError: if the checkpoints are not growing whole numbers up to the horizon.
    """
    if checkpoints is None:
        return _run(simulation, seed, simulation.checkpoints())
    wanted = np.asarray(checkpoints)
    horizon = simulation.mechanism.setting.horizon
    whole = wanted.ndim == 1 and wanted.size > 0 and np.issubdtype(wanted.dtype, np.integer)
    if not whole or wanted[0] < 1 or wanted[-1] > horizon or (np.diff(wanted) <= 0).any():
        raise ParameterError(
            "checkpoints", f"must be growing whole numbers from 1 to the horizon, {horizon}"
        )
    return _run(simulation, seed, wanted.astype(np.int64))


def simulate(
    simulation: Simulation,
    *,
    seeds: Iterable[int],
    jobs: int = 1,
    device: str = "cpu",
    on_seed: Callable[[int], None] | None = None,
) -> Outcome:
    """Play every seed, on ``jobs`` processes or on a GPU.

    An interrupt (Ctrl-C) ends it early; the seeds that are finished by then are the outcome.

    Args:
        simulation: what to play.
        seeds: whole numbers from 0, each a world and a learner of its own.
        jobs: worker processes; results are the same for any number.
        device: 'cpu', or 'cuda' for a GPU (docs/gpu.md), where ``jobs`` has no meaning: worlds are
            those of the same seeds, all that happens in them is drawn anew.
        on_seed: called with the number of seeds done whenever one ends.

    Returns:
        The pseudo-regret over time of every seed that was played.

    Raises:
        ParameterError: if there are no seeds, or one of them is no whole number from 0, or the
            GPU cannot play this.
        BackendError: if there is no GPU, or the extra ``cuda`` is missing.
    """
    checks.one_of("device", device, DEVICES)
    wanted = [checks.count("seeds", seed, least=0) for seed in seeds]
    if not wanted:
        raise ParameterError("seeds", "is empty; give at least one seed")
    jobs = checks.count("jobs", jobs)
    if device == "cuda":
        return _simulate_on_gpu(simulation, wanted, on_seed)
    _run(simulation, 0, np.array([1]))  # compile, or load what was compiled before
    start = time.perf_counter()
    pool = joblib.Parallel(n_jobs=min(jobs, len(wanted)), return_as="generator")
    regrets: list[F64] = []
    try:
        for curve in pool(joblib.delayed(run_seed)(simulation, seed) for seed in wanted):
            regrets.append(curve)
            if on_seed is not None:
                on_seed(len(regrets))
    except KeyboardInterrupt:
        if not regrets:
            raise
    return Outcome(
        simulation=simulation,
        asked=len(wanted),
        seeds=wanted[: len(regrets)],
        rounds=simulation.checkpoints(),
        regrets=np.array(regrets),
        seconds=time.perf_counter() - start,
    )


def _simulate_on_gpu(
    simulation: Simulation, seeds: list[int], on_seed: Callable[[int], None] | None
) -> Outcome:
    from discreet.simulation._cuda import _play as gpu  # noqa: PLC0415  # it needs this module
    from discreet.simulation._cuda._runtime import Gpu  # noqa: PLC0415  # the same

    device, start = Gpu(), time.perf_counter()
    played, regrets = gpu.played(device, simulation, seeds, on_seed=on_seed)
    return Outcome(
        simulation=simulation,
        asked=len(seeds),
        seeds=played,
        rounds=simulation.checkpoints(),
        regrets=regrets,
        seconds=time.perf_counter() - start,
    )


def streams(seed: int) -> list[np.random.SeedSequence]:
    """Independent seed sequences for the world, the privacy noise and the policy."""
    return np.random.SeedSequence(seed).spawn(3)


def release_after(simulation: Simulation, seed: int, rounds: int) -> tuple[Release, World]:
    """What the learner of a seed has released after so many rounds, and where it plays.

    Args:
        simulation: what to play.
        seed: which world and which noise; a whole number from 0.
        rounds: how many rounds to play, up to the horizon.

    Returns:
        The last release, and the world, which can go on from its next round.

    Raises:
        ParameterError: there are not so many rounds.
    """
    wanted = checks.within("rounds", checks.count("rounds", rounds), 1, simulation.rounds)
    mechanism, dim = simulation.mechanism, simulation.environment.problem.dim
    _, state, world = _played(simulation, seed, np.array([wanted]))
    number, rows = int(state.number[0]), 0
    for _ in range(number):
        rows = mechanism.schedule.after(rows)
    gram, moment = np.empty((dim, dim)), np.empty(dim)
    linalg.unpack(state.totals[0], mechanism.shift, mechanism.firsts, gram, moment)
    held = sums.Arrays(state.nodes, state.idle, state.totals)
    spread, weight = mechanism.amounts(held, number, rows)
    shown = Release(
        number=number,
        rows=rows,
        gram=gram,
        moment=moment,
        spread=spread,
        weight=weight,
        mechanism=mechanism,
    )
    return shown, world


def _run(simulation: Simulation, seed: int, checkpoints: I64) -> F64:
    return _played(simulation, seed, checkpoints)[0]


@_blas.one_thread()
def _played(simulation: Simulation, seed: int, checkpoints: I64) -> tuple[F64, sums.Sums, World]:
    """The pseudo-regret at checkpoints, and what is left after the last of them."""
    world_seed, noise_seed, policy_seed = streams(seed)
    world = simulation.environment.start(world_seed)
    noise, draws = random.seed_state(noise_seed), random.seed_state(policy_seed)
    return *play_on(simulation, world, noise, draws, checkpoints), world


def play_on(
    simulation: Simulation, world: World, noise: U64, draws: U64, checkpoints: I64
) -> tuple[F64, sums.Sums]:
    """A fresh learner in a world as it is now: its pseudo-regret at checkpoints, and its sums.

    Args:
        simulation: what to play; its environment is not started again.
        world: where, which moves on.
        noise: the random state of privacy noise, which moves on.
        draws: that of the policy.
        checkpoints: rounds from now at which the regret is recorded.

    Returns:
        The pseudo-regret since now at each checkpoint, and the learner's sums after the last.
    """
    mechanism, policy = simulation.mechanism, simulation.policy
    state, law, bounds = mechanism.float_sums(), mechanism.law, mechanism.bounds
    regrets = np.empty(len(checkpoints))
    states = (state, world.state, noise, draws)
    ends: dict[str, Any] = {
        "rounds": int(checkpoints[-1]),
        "checkpoints": checkpoints,
        "records": regrets,
    }
    releases = mechanism.schedule.count(int(checkpoints[-1]))
    if isinstance(policy, PosteriorUCB):
        numbers, spreads = mechanism.spreads
        interruptible.call(
            rounds.play_posterior,
            world.arrays,
            law,
            mechanism.firsts,
            mechanism.sharing,
            mechanism.schedule.timing,
            numbers,
            spreads,
            mechanism.posterior_terms,
            releases,
            policy.numbers(mechanism),
            *states,
            **ends,
        )
        return regrets, state
    rule = rounds.Rule(float(policy.optimism), isinstance(policy, Thompson))
    if bounds is not None:
        radius = rounds.RadiusArgs(mechanism.shift, bounds.rho_min, *mechanism.radius_terms)
        interruptible.call(
            rounds.play_radius,
            world.arrays,
            law,
            mechanism.firsts,
            mechanism.sharing,
            radius,
            rule,
            *states,
            **ends,
        )
    else:
        interruptible.call(
            rounds.play_width,
            world.arrays,
            law,
            mechanism.firsts,
            mechanism.sharing,
            mechanism.schedule.timing,
            mechanism.noise_table,
            mechanism.width_terms,
            releases,
            rule,
            *states,
            **ends,
        )
    return regrets, state
