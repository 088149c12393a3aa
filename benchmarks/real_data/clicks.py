"""Articles that few people click: one is better than the others, and nobody says which."""

from collections.abc import Callable

import numpy as np

from benchmarks.real_data import learners, values
from benchmarks.real_data.data import F64, I64
from benchmarks.real_data.sizes import Sizes
from benchmarks.speed.results import BenchSection, Cell
from discreet import Problem
from discreet.privacy import Privacy

ARTICLES = 10
RATE, BEST = 0.02, 0.05
Step = Callable[[], None]


def clicks(sizes: Sizes, data: None = None, on_step: Step = lambda: None) -> BenchSection:
    """The mean click rate of what is shown, in the last quarter of all rounds.

    Args:
        sizes: how much is measured.
        data: nothing: the people are made up.
        on_step: called after each game.
    """
    del data
    rows = [_fixed("uniform", _uniform()), _fixed("best fixed article", BEST)]
    for epsilon in sizes.targets:
        played = []
        for seed in range(sizes.players):
            played.append(_played(epsilon, sizes, seed))
            on_step()
        rule = "nonprivate" if epsilon is None else "learner"
        rows.append({"rule": rule, "epsilon": epsilon, **values.over_seeds(played)})
    private = [float(row["lowest"]) for row in rows if row["epsilon"] is not None]  # type: ignore[arg-type]
    return BenchSection(
        name="clicks",
        title="articles that few people click, click rate of what is shown",
        rows=tuple(rows),
        notes=(
            (
                f"{sizes.players} seeds (from 0), {sizes.views:,} rounds, delta {sizes.delta:g}; "
                f"{sizes.noise} noise; Problem.between(0, 1), a feature for each article, theta "
                "norm 1, and nothing else stated."
            ),
            (
                f"{ARTICLES} articles are clicked with probability {RATE:g}, one of them with "
                f"{BEST:g}. Uniform choices have {_uniform():.4f}."
            ),
            "low and high: a 95% interval for the mean over seeds (Student's t).",
        ),
        figures={"lowest_above_uniform": min(private) - _uniform()},
    )


def _uniform() -> float:
    return RATE + (BEST - RATE) / ARTICLES


def _played(epsilon: float | None, sizes: Sizes, seed: int) -> tuple[float, float]:
    """The click rate of what was shown in the last quarter, and in all rounds."""
    rng = np.random.default_rng((seed, 6))
    rates = np.full(ARTICLES, RATE)
    rates[rng.integers(ARTICLES)] = BEST
    bandit = learners.learner(
        Problem.between(0, 1, dim=ARTICLES, action_norm=1.0, theta_norm=1.0),
        variant="nonprivate" if epsilon is None else "windows",
        horizon=sizes.views,
        privacy=None if epsilon is None else Privacy(epsilon=epsilon, delta=sizes.delta),
        noise=sizes.noise,
        seed=(seed, 7),
    )
    shown = np.empty(sizes.views)

    def rewarded(start: int, stop: int, chosen: I64) -> F64:
        shown[start:stop] = rates[chosen]
        return (rng.random(stop - start) < shown[start:stop]).astype(np.float64)

    articles = np.eye(ARTICLES)
    learners.play(bandit, sizes.views, lambda a, b: np.array([articles] * (b - a)), rewarded)
    return float(shown[-(sizes.views // 4) :].mean()), float(shown.mean())


def _fixed(rule: str, rate: float) -> dict[str, Cell]:
    """A rule that does not learn."""
    known = dict.fromkeys(("last_quarter", "lowest", "all_rounds"), rate)
    unknown = dict.fromkeys(("epsilon", "low", "high", "error"))
    order = ("epsilon", "last_quarter", "low", "high", "error", "lowest", "all_rounds")
    return {"rule": rule, **{name: {**known, **unknown}[name] for name in order}}
