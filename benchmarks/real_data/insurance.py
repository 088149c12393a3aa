"""Learners that start from the RAND health insurance experiment, and people who were held out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.real_data import learners, values
from benchmarks.real_data.data import F64, I64, MODELS, Logged, Model
from benchmarks.real_data.sizes import Sizes
from benchmarks.real_data.values import Value
from benchmarks.speed.results import BenchSection, Cell
from discreet.privacy import Privacy

PENALTY = 0.5  # of the ridge regression
REACH = 1.959964  # standard errors of a 95% interval

Step = Callable[[], None]


@dataclass(frozen=True)
class _Split:
    """One division of the rows, and the decision sets under one model."""

    number: int
    train: Logged
    held_out: Logged
    rows: F64  # what was chosen in the first part, shape (n, d)
    sets: F64  # of the second part, shape (m, K, d)
    shares: F64

    def value(self, probabilities: F64) -> Value:
        return values.snips(probabilities, self.held_out, self.shares)


Found = dict[tuple[str, float | None, float | None, str], list[Value]]


def insurance(sizes: Sizes, data: Logged, on_step: Step = lambda: None) -> BenchSection:
    """What each rule is worth for people who were held out, over splits by people.

    Args:
        sizes: how much is measured.
        data: the experiment, or a stand-in.
        on_step: called after each split under each model.
    """
    found: Found = {}
    uninformed: dict[tuple[str, float, float], int] = {}
    splits = [data.split(seed, sizes.learned) for seed in range(sizes.splits)]
    for model in MODELS:
        sets = model.sets(data)
        for number, (first, second) in enumerate(splits):
            split = _split(number, data, sets, first, second)
            for key, value in _plain(split, model, sets.shape[1]):
                found.setdefault(key, []).append(value)
            for key, value, informed in _learned(split, model, sizes, data):
                found.setdefault(key, []).append(value)
                if not informed:
                    name, theta_norm, epsilon, _ = key
                    place = (name, theta_norm or 0.0, epsilon or 0.0)
                    uninformed[place] = uninformed.get(place, 0) + 1
            on_step()
    level = [value.value for value in found["any", None, None, "uniform"]][: sizes.splits]
    rows = [_row(key, worth[: sizes.splits], level) for key, worth in found.items()]
    lowest = min(float(row["t"]) for row in rows if row["rule"] == "learner")  # type: ignore[arg-type]
    notes = (
        (
            f"{sizes.splits} splits by people (seeds from 0), {sizes.learned:,} rows to learn "
            f"from; epsilon as stated, delta {sizes.delta:g}, for one row; {sizes.noise} noise."
        ),
        (
            "value: the mean reward on rows that were held out (SNIPS), the mean over splits; "
            "error: its standard error on one split, by person; low and high: 95% by "
            "that error. t: of the differences to "
            "uniform over splits, which share rows."
        ),
        *(
            f"{name}, theta norm {norm:g}, epsilon {epsilon:g}: in {count} splits the release "
            "could not tell actions apart."
            for (name, norm, epsilon), count in uninformed.items()
        ),
    )
    return BenchSection(
        name="insurance",
        title="RAND health insurance experiment, value of rules on people held out",
        rows=tuple(rows),
        notes=notes,
        figures={"lowest_t": lowest},
    )


def _split(number: int, data: Logged, sets: F64, first: I64, second: I64) -> _Split:
    train = data.subset(first)
    return _Split(
        number=number,
        train=train,
        held_out=data.subset(second),
        rows=sets[first, train.chosen],
        sets=sets[second],
        shares=data.shares,
    )


def _plain(
    split: _Split, model: Model, actions: int
) -> Iterator[tuple[tuple[str, None, None, str], Value]]:
    """Rules that need no learner."""
    count = len(split.held_out.chosen)
    yield ("any", None, None, "uniform"), split.value(np.full((count, actions), 1 / actions))
    best = values.best_single(split.train, actions)
    single = values.taken(np.full(count, best), actions)
    yield ("any", None, None, "best single plan"), split.value(single)
    if not model.blocks:  # they change nothing here
        theta = values.ridge(split.rows, split.train.rewards, PENALTY)
        fitted = values.taken((split.sets @ theta).argmax(axis=1), actions)
        yield (model.name, None, None, "ridge"), split.value(fitted)


def _learned(
    split: _Split, model: Model, sizes: Sizes, data: Logged
) -> Iterator[tuple[tuple[str, float, float | None, str], Value, bool]]:
    """Learners with and without privacy, and whether they could tell actions apart."""
    for theta_norm in sizes.theta_norms:
        problem = learners.unit_problem(model.sizes(data), theta_norm)
        targets: list[tuple[str, float | None]] = [("windows", eps) for eps in sizes.epsilons]
        if not model.blocks:  # only the default has a use for them
            targets += [("tight", eps) for eps in sizes.epsilons] + [("nonprivate", None)]
        for variant, epsilon in targets:
            privacy = None if epsilon is None else Privacy(epsilon=epsilon, delta=sizes.delta)
            bandit = learners.learner(
                problem,
                variant=variant,
                horizon=len(data.chosen),
                privacy=privacy,
                noise=sizes.noise,
                seed=(split.number, 1),
            )
            learners.warm_start(bandit, split.rows, split.train.rewards)
            release = bandit.release
            own = split.value(learners.probabilities(bandit.policy, release, split.sets))
            named = {"windows": "learner", "tight": "tight, UCB"}.get(variant, variant)
            informed = variant == "tight" or release.posterior.distinguishes
            yield (model.name, theta_norm, epsilon, named), own, informed
            if variant == "windows":
                mean = learners.probabilities(learners.GREEDY, release, split.sets)
                yield (model.name, theta_norm, epsilon, "greedy"), split.value(mean), True


def _row(
    key: tuple[str, float | None, float | None, str], worth: list[Value], uniform: list[float]
) -> dict[str, Cell]:
    model, theta_norm, epsilon, rule = key
    own = [one.value for one in worth]
    above = values.paired(own, uniform)
    value, error = float(np.mean(own)), float(np.mean([one.error for one in worth]))
    return {
        "model": model,
        "theta_norm": theta_norm,
        "epsilon": epsilon,
        "rule": rule,
        "value": value,
        "low": value - REACH * error,
        "high": value + REACH * error,
        "error": error,
        "above_uniform": above.mean,
        "t": above.t,
        "lowest": min(own),
    }
