"""Many rounds times many seeds of a linear baseline, through the compiled steps."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from discreet import _blas
from discreet import _checks as checks
from discreet.baselines.linear._learner import PlayableRule
from discreet.errors import ParameterError
from discreet.kernels import _random as random
from discreet.simulation.environments import Environment

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def run_linear_seed(rule: PlayableRule, environment: Environment, seed: int, rounds: I64) -> F64:
    """One seed, start to end, in the same world as `discreet.simulation` has for this seed.

    Args:
        rule: what plays.
        environment: where.
        seed: which world, noise and draws; a whole number from 0.
        rounds: checkpoints, growing.

    Returns:
        The pseudo-regret so far at each checkpoint, shape (C,).

    Raises:
        ParameterError: if the rule cannot be played there, or the bounds do not fit.
    """
    if environment.problem.dim != rule.problem.dim:
        raise ParameterError(
            "environment", f"has {environment.problem.dim} features; the rule {rule.problem.dim}"
        )
    if int(rounds[-1]) > rule.horizon:
        raise ParameterError(
            "rounds", f"is {rounds[-1]}, more than the horizon of {rule.horizon}; give fewer rounds"
        )
    world_seed, noise_seed, policy_seed = np.random.SeedSequence(seed).spawn(3)
    world = environment.start(world_seed)
    noise, draws = random.seed_state(noise_seed), random.seed_state(policy_seed)
    regrets = np.empty(len(rounds))
    with _blas.one_thread():
        rule.play(world, noise, draws, rounds, regrets)
    return regrets


@dataclass(frozen=True, kw_only=True)
class LinearOutcome:
    """Pseudo-regret over time, for each seed that was played.

    Attributes:
        rule: what played.
        seeds: which seeds, shape (S,).
        rounds: the checkpoints, shape (C,).
        regrets: pseudo-regret so far, shape (S, C).
        seconds: wall-clock time of all of it, compilation aside.
    """

    rule: PlayableRule
    seeds: list[int]
    rounds: I64
    regrets: F64
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """What ``discreet simulate --baseline --json`` prints, but for the baseline's name."""
        final, mean = self.regrets[:, -1], self.regrets.mean(axis=0)
        count = len(final)
        stderr = None if count == 1 else float(final.std(ddof=1) / np.sqrt(count))
        return {
            "rounds": int(self.rounds[-1]),
            "seeds": count,
            "protects": self.rule.protects,
            "trust": self.rule.trust,
            "pseudo_regret": {
                "mean": float(mean[-1]),
                "stderr": stderr,
                "worst": float(final.max()),
                "per_seed": [float(value) for value in final],
                "curve": [
                    [int(at), float(value)] for at, value in zip(self.rounds, mean, strict=True)
                ],
            },
            "rounds_per_second": int(self.rounds[-1]) * count / self.seconds,
            "guarantee": self.rule.guarantee.to_json(),
        }


def simulate_linear(
    rule: PlayableRule,
    environment: Environment,
    *,
    seeds: Iterable[int],
    rounds: int | None = None,
    jobs: int = 1,
    on_seed: Callable[[int], None] | None = None,
) -> LinearOutcome:
    """Play a linear baseline, once for each seed.

    A seed fixes the world, the noise and the policy's draws, each with a stream of its own; the
    world is the one that `discreet.simulation.simulate` has for this seed.

    Args:
        rule: what plays, such as `AdaCOFUL`.
        environment: where.
        seeds: whole numbers from 0.
        rounds: how many; the rule's horizon if left out.
        jobs: worker processes; results are the same for any number.
        on_seed: called with the number of seeds done whenever one ends.

    Returns:
        The pseudo-regret over time of every seed.

    Raises:
        ParameterError: if there are no seeds, or the rule cannot be played there.
    """
    wanted = [checks.count("seeds", seed, least=0) for seed in seeds]
    if not wanted:
        raise ParameterError("seeds", "is empty; give at least one seed")
    last = checks.count("rounds", rule.horizon if rounds is None else rounds)
    spaced = [np.linspace(0, last, 101)[1:], np.geomspace(1, last, 60)]
    checkpoints = np.unique(np.rint(np.concatenate(spaced)).astype(np.int64).clip(min=1))
    run_linear_seed(rule, environment, 0, np.array([1]))  # compile, or say what does not fit
    start = time.perf_counter()
    processes = min(checks.count("jobs", jobs), len(wanted))
    pool = joblib.Parallel(n_jobs=processes, return_as="generator")
    regrets: list[F64] = []
    played = (joblib.delayed(run_linear_seed)(rule, environment, s, checkpoints) for s in wanted)
    for curve in pool(played):
        regrets.append(curve)
        if on_seed is not None:
            on_seed(len(regrets))
    return LinearOutcome(
        rule=rule,
        seeds=wanted,
        rounds=checkpoints,
        regrets=np.array(regrets),
        seconds=time.perf_counter() - start,
    )
