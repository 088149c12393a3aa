"""Pulls per second of the multi-armed learners' rules, on one core."""

import time
from functools import partial
from statistics import fmean, median

import numpy as np

from benchmarks.speed.results import Section
from benchmarks.speed.timing import Run, interleaved
from benchmarks.speed.workload import Sizes
from discreet.baselines import Arms, Elimination, UpperConfidence
from discreet.baselines._learner import ArmRule
from discreet.baselines._simulate import run_seed

NAME = "pulls"
N_ARMS, GAP, EPSILON = 10, 0.35, 0.5
PULLS_PER_ROUND = 10  # pulls played for each round of the other sections


def measure(sizes: Sizes) -> Section:
    """Ten arms with one gap; rewards and noise are drawn on the way."""
    horizon = PULLS_PER_ROUND * sizes.rounds
    rules: dict[str, ArmRule] = {
        "ucb1": UpperConfidence(n_arms=N_ARMS, horizon=horizon),
        "dpucb": UpperConfidence(n_arms=N_ARMS, horizon=horizon, epsilon=EPSILON),
        "dpse": Elimination(n_arms=N_ARMS, horizon=horizon, epsilon=EPSILON),
    }
    tasks = {name: partial(_played, rule) for name, rule in rules.items()}
    for task in tasks.values():
        task(0)  # compile
    runs = interleaved(tasks, repeats=sizes.repeats)
    return Section(
        name=NAME,
        title=f"arm pulls per second on one core, {N_ARMS} arms, gap {GAP:g}, epsilon {EPSILON:g}",
        rows=tuple(
            {
                "learner": name,
                "pulls_per_second": round(max(run.rate for run in found)),
                "median": round(median(run.rate for run in found)),
                "regret": fmean(run.regret for run in found),
                "pulls": horizon,
            }
            for name, found in runs.items()
        ),
        notes=("dpse draws one binomial number for each arm and batch, not one for each pull.",),
        figures={
            f"{name}_pulls_per_second": max(run.rate for run in found)
            for name, found in runs.items()
        },
    )


def _played(rule: ArmRule, seed: int) -> Run:
    arms = Arms.with_gaps([GAP] * (N_ARMS - 1), best_mean=0.0)
    start = time.perf_counter()
    pulls = run_seed(rule, arms, seed, np.array([rule.horizon]))
    seconds = time.perf_counter() - start
    return Run(rounds=rule.horizon, seconds=seconds, regret=float(pulls[-1] @ arms.gaps))
