"""The page that a run ends in: what was asked, what holds, what it looks like."""

from collections import Counter
from collections.abc import Mapping, Sequence

from discreet.experiments._claims import Claim, Verdict
from discreet.experiments._experiment import Experiment
from discreet.experiments._results import Results
from discreet.report._exhibit import Exhibit
from discreet.report._page import Block, Facts, Page, Prose, Section
from discreet.report._verdicts import Statement, Statements

PAPER = (
    "“Differentially Private Contextual Linear Bandits” (Shariff and Sheffet, NeurIPS 2018, "
    "arXiv:1810.00068)"
)
WHAT_IT_IS = (
    f"The experiments of {PAPER}, run again by an independent implementation, and experiments of "
    "our own; what the paper says of its, and we of ours, is checked statement by statement, and "
    "each statement names its source. Pseudo-regret is what "
    "choices cost: in each round, the mean reward of the best action less that of the action "
    "chosen, summed up."
)
HOW_JUDGED = (
    "Figures in brackets are 95 % confidence intervals. A statement holds, or does not, only if "
    "the whole interval says so and enough was played; otherwise it is not decided. One in "
    "twenty such intervals misses the truth, and the statements were judged one by one."
)
MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.OPEN: "?"}


def page(
    experiments: Sequence[Experiment],
    results: Mapping[str, Results],
    claims: Mapping[str, Sequence[Claim]],
    exhibits: Mapping[str, Sequence[Exhibit]],
    origin: tuple[tuple[str, str], ...],
) -> Page:
    """All experiments of a run on one page."""
    every = [claim for one in experiments for claim in claims[one.name]]
    title = (
        experiments[0].title
        if len(experiments) == 1
        else "The paper's experiments run again, and our own"
    )
    sections = [
        Section(heading=one.title, blocks=_blocks(one, results[one.name], exhibits[one.name]))
        for one in experiments
    ]
    if every:
        judged = Section(
            heading="What is claimed, and what we measured",
            blocks=(Prose(_summary(every)), *_judged(experiments, claims), Prose(HOW_JUDGED)),
        )
        sections.insert(0, judged)
    return Page(
        title=title,
        lead=(Prose(WHAT_IT_IS),),
        sections=tuple(sections),
        provenance=Facts(origin),
    )


def _summary(claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    parts = [f"{counts[verdict]} {_verb(verdict, counts[verdict])}" for verdict in Verdict]
    return f"Of {len(claims)} statements, " + ", ".join(parts[:-1]) + f" and {parts[-1]}."


def _verb(verdict: Verdict, count: int) -> str:
    many = {
        Verdict.HOLDS: "hold",
        Verdict.FAILS: "do not hold",
        Verdict.OPEN: "are not decided at this scale",
    }
    one = {
        Verdict.HOLDS: "holds",
        Verdict.FAILS: "does not hold",
        Verdict.OPEN: "is not decided at this scale",
    }
    return (one if count == 1 else many)[verdict]


def _judged(
    experiments: Sequence[Experiment], claims: Mapping[str, Sequence[Claim]]
) -> list[Statements]:
    return [
        Statements(
            title=one.title,
            items=tuple(_statement(claim) for claim in claims[one.name]),
        )
        for one in experiments
        if claims[one.name]
    ]


def _statement(claim: Claim) -> Statement:
    return Statement(
        text=claim.statement,
        mark=MARKS[claim.verdict],
        verdict=claim.verdict.value,
        kind=claim.verdict.name.lower(),
        details=(
            ("measured", claim.measured),
            ("published", claim.published),
            ("rule", claim.rule),
            ("source", claim.source),
        ),
    )


def _blocks(
    experiment: Experiment, results: Results, exhibits: Sequence[Exhibit]
) -> tuple[Block, ...]:
    return (
        Prose(experiment.question),
        *(exhibit.block() for exhibit in exhibits),
        *experiment.tables(results),
        *(Prose(text) for text in experiment.reading),
    )
