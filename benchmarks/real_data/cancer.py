"""Learners that play on breast cancer records: say whether a tumour is benign, and be told."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.real_data import learners, values
from benchmarks.real_data.data import F64, I64, Labelled
from benchmarks.real_data.sizes import Sizes
from benchmarks.speed.results import BenchSection, Cell
from discreet.privacy import Privacy

PENALTY = 0.1  # of the linear fit to all records
Step = Callable[[], None]


@dataclass(frozen=True)
class _Game:
    """A learner and the records it is shown."""

    epsilon: float | None
    theta_norm: float
    blocks: bool


def cancer(sizes: Sizes, data: Labelled, on_step: Step = lambda: None) -> BenchSection:
    """How often learners are right, in the last quarter of all rounds.

    Args:
        sizes: how much is measured.
        data: the records, or a stand-in.
        on_step: called after each game.
    """
    rows = []
    for game in _games(sizes):
        played = []
        for seed in range(sizes.players):
            played.append(_played(game, sizes, data, seed))
            on_step()
        rows.append(_row(game, played))
    fitted = data.records @ values.ridge(data.records, 2.0 * data.labels - 1, PENALTY) > 0
    known = float((fitted == data.labels).mean())
    common = float(max(data.labels.mean(), 1 - data.labels.mean()))
    private = [float(row["last_quarter"]) for row in rows if row["epsilon"] is not None]  # type: ignore[arg-type]
    return BenchSection(
        name="cancer",
        title="breast cancer records as a game, share of right answers",
        rows=tuple(rows),
        notes=(
            (
                f"{sizes.players} seeds (from 0), {sizes.rounds:,} rounds, people drawn with "
                f"replacement, reward 1 if right and -1 if not, delta {sizes.delta:g}; "
                f"{sizes.noise} noise."
            ),
            (
                f"A linear fit to all records, labels known, is right for {known:.1%} of them; the "
                f"more common answer for {common:.1%}."
            ),
            (
                "Measurements are standardised with means and deviations that are taken to be "
                "public, and divided by 10; longer records are cut to norm 1."
            ),
        ),
        figures={"lowest_above_common": min(private) - common},
    )


def norms(sizes: Sizes, data: Labelled, on_step: Step = lambda: None) -> BenchSection:
    """The same game with a `theta_norm` that is stated too small or too large.

    Args:
        sizes: how much is measured.
        data: the records, or a stand-in.
        on_step: called after each game.
    """
    fitted = values.ridge(data.records, 2.0 * data.labels - 1, PENALTY)
    truth = float(np.sqrt(2.0) * np.linalg.norm(fitted))  # an answer's parameter is minus the other
    shorter = replace(sizes, rounds=sizes.norm_rounds)
    rows = []
    for epsilon in sizes.epsilons:
        for stated in sizes.stated_norms:
            game = _Game(epsilon, stated, blocks=True)
            played = []
            for seed in range(sizes.players):
                played.append(_played(game, shorter, data, seed))
                on_step()
            rows.append({**_row(game, played), "of_the_fit": stated / truth})
    return BenchSection(
        name="norms",
        title="breast cancer records, theta_norm as stated",
        rows=tuple(rows),
        notes=(
            (
                f"{sizes.players} seeds (from 0), {shorter.rounds:,} rounds; the fit's norm is "
                f"{truth:.3g}."
            ),
        ),
    )


def _games(sizes: Sizes) -> list[_Game]:
    private = [
        _Game(epsilon, theta_norm, blocks)
        for epsilon in sizes.epsilons
        for theta_norm in sizes.theta_norms
        for blocks in (True, False)
    ]
    return [*private, *(_Game(None, theta_norm, blocks=False) for theta_norm in sizes.theta_norms)]


def _played(game: _Game, sizes: Sizes, data: Labelled, seed: int) -> tuple[float, float]:
    """The share of right answers in the last quarter, and in all rounds."""
    people = np.random.default_rng((seed, 2)).integers(0, len(data.labels), sizes.rounds)
    sets, labels = data.sets, data.labels
    p = data.records.shape[1]
    privacy = None if game.epsilon is None else Privacy(epsilon=game.epsilon, delta=sizes.delta)
    bandit = learners.learner(
        learners.unit_problem((p, p) if game.blocks else (2 * p,), game.theta_norm),
        variant="nonprivate" if privacy is None else "windows",
        horizon=sizes.rounds,
        privacy=privacy,
        noise=sizes.noise,
        seed=(seed, 3),
    )
    right = np.empty(sizes.rounds, dtype=np.bool_)

    def rewarded(start: int, stop: int, chosen: I64) -> F64:
        right[start:stop] = chosen == labels[people[start:stop]]
        return np.where(right[start:stop], 1.0, -1.0)

    learners.play(bandit, sizes.rounds, lambda a, b: sets[people[a:b]], rewarded)
    return float(right[-(sizes.rounds // 4) :].mean()), float(right.mean())


def _row(game: _Game, played: list[tuple[float, float]]) -> dict[str, Cell]:
    last, overall = np.array(played).T
    return {
        "epsilon": game.epsilon,
        "theta_norm": game.theta_norm,
        "blocks": "yes" if game.blocks else "no",
        "last_quarter": float(last.mean()),
        "error": float(last.std(ddof=1) / np.sqrt(last.size)) if last.size > 1 else None,
        "lowest": float(last.min()),
        "all_rounds": float(overall.mean()),
    }
