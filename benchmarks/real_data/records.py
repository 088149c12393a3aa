"""Learners that play on labelled records: say which label a record has, and be told if it is right.

Breast cancer records have two labels, handwritten digits ten.
"""

from collections.abc import Callable
from dataclasses import dataclass

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
    """How often learners are right about tumours, in the last quarter of all rounds.

    Args:
        sizes: how much is measured.
        data: the records, or a stand-in.
        on_step: called after each game.
    """
    private = [
        _Game(epsilon, theta_norm, blocks)
        for epsilon in sizes.epsilons
        for theta_norm in sizes.theta_norms
        for blocks in (True, False)
    ]
    plain = [_Game(None, theta_norm, blocks=False) for theta_norm in sizes.theta_norms]
    return _section(
        "cancer",
        "breast cancer records as a game, share of right answers",
        [*private, *plain],
        (sizes, data, sizes.rounds, on_step),
        (
            "Measurements are standardised with means and deviations that are taken to be "
            "public, and divided by 10; longer records are cut to norm 1."
        ),
    )


def digits(sizes: Sizes, data: Labelled, on_step: Step = lambda: None) -> BenchSection:
    """How often learners are right about handwritten digits, in the last quarter of all rounds.

    Args:
        sizes: how much is measured.
        data: the images, or a stand-in.
        on_step: called after each game.
    """
    norm = max(sizes.theta_norms)
    games = [_Game(epsilon, norm, blocks=epsilon is not None) for epsilon in sizes.targets]
    return _section(
        "digits",
        "handwritten digits as a game, share of right answers",
        games,
        (sizes, data, sizes.drawings, on_step),
        "Ink is averaged over squares of four pixels, centred, and divided by a public constant.",
    )


def norms(sizes: Sizes, data: Labelled, on_step: Step = lambda: None) -> BenchSection:
    """The tumours' game with a `theta_norm` that is stated too small or too large.

    Args:
        sizes: how much is measured.
        data: the records, or a stand-in.
        on_step: called after each game.
    """
    fitted = values.ridge(data.records, 2.0 * data.labels - 1, PENALTY)
    truth = float(np.sqrt(2.0) * np.linalg.norm(fitted))  # an answer's parameter is minus the other
    rows = []
    for epsilon in sizes.epsilons:
        for stated in sizes.stated_norms:
            game = _Game(epsilon, stated, blocks=True)
            played = []
            for seed in range(sizes.players):
                played.append(_played(game, sizes, data, sizes.norm_rounds, seed))
                on_step()
            rows.append({**_row(game, played), "of_the_fit": stated / truth})
    return BenchSection(
        name="norms",
        title="breast cancer records, theta_norm as stated",
        rows=tuple(rows),
        notes=(
            (
                f"{sizes.players} seeds (from 0), {sizes.norm_rounds:,} rounds; the fit's norm is "
                f"{truth:.3g}."
            ),
        ),
    )


def _section(
    name: str,
    title: str,
    games: list[_Game],
    what: tuple[Sizes, Labelled, int, Step],
    scaled: str,
) -> BenchSection:
    """All games on some records, beside rules that do not learn."""
    sizes, data, rounds, on_step = what
    shares = np.bincount(data.labels, minlength=data.actions) / len(data.labels)
    rows = [
        _fixed("uniform", 1 / data.actions),
        _fixed("best fixed answer", float(shares.max())),
        _fixed("linear fit, labels known", _fitted(data)),
    ]
    for game in games:
        played = []
        for seed in range(sizes.players):
            played.append(_played(game, sizes, data, rounds, seed))
            on_step()
        rows.append(_row(game, played))
    private = [float(row["last_quarter"]) for row in rows if row["epsilon"] is not None]  # type: ignore[arg-type]
    return BenchSection(
        name=name,
        title=title,
        rows=tuple(rows),
        notes=(
            (
                f"{sizes.players} seeds (from 0), {rounds:,} rounds, records drawn with "
                f"replacement, reward 1 if right and -1 if not, delta {sizes.delta:g}; "
                f"{sizes.noise} noise."
            ),
            "low and high: a 95% interval for the mean over seeds (Student's t).",
            scaled,
        ),
        figures={"lowest_above_fixed": min(private) - float(shares.max())},
    )


def _fitted(data: Labelled) -> float:
    """The share of right answers of a linear fit to all records."""
    marks = np.eye(data.actions)[data.labels]
    answers = (data.records @ values.ridge(data.records, 2 * marks - 1, PENALTY)).argmax(axis=1)
    return float((answers == data.labels).mean())


def _played(
    game: _Game, sizes: Sizes, data: Labelled, rounds: int, seed: int
) -> tuple[float, float]:
    """The share of right answers in the last quarter, and in all rounds."""
    drawn = np.random.default_rng((seed, 2)).integers(0, len(data.labels), rounds)
    p, actions = data.records.shape[1], data.actions
    privacy = None if game.epsilon is None else Privacy(epsilon=game.epsilon, delta=sizes.delta)
    bandit = learners.learner(
        learners.unit_problem((p,) * actions if game.blocks else (actions * p,), game.theta_norm),
        variant="nonprivate" if privacy is None else "windows",
        horizon=rounds,
        privacy=privacy,
        noise=sizes.noise,
        seed=(seed, 3),
    )
    right = np.empty(rounds, dtype=np.bool_)

    def rewarded(start: int, stop: int, chosen: I64) -> F64:
        right[start:stop] = chosen == data.labels[drawn[start:stop]]
        return np.where(right[start:stop], 1.0, -1.0)

    learners.play(bandit, rounds, lambda a, b: data.sets(drawn[a:b]), rewarded)
    return float(right[-(rounds // 4) :].mean()), float(right.mean())


def _fixed(rule: str, share: float) -> dict[str, Cell]:
    """A rule whose share of right answers over all records is known, and the same at any time."""
    return {
        "rule": rule,
        "epsilon": None,
        "theta_norm": None,
        "blocks": None,
        "last_quarter": share,
        "low": None,
        "high": None,
        "error": None,
        "lowest": share,
        "all_rounds": share,
    }


def _row(game: _Game, played: list[tuple[float, float]]) -> dict[str, Cell]:
    return {
        "rule": "nonprivate" if game.epsilon is None else "learner",
        "epsilon": game.epsilon,
        "theta_norm": game.theta_norm,
        "blocks": "yes" if game.blocks else "no",
        **values.over_seeds(played),
    }
