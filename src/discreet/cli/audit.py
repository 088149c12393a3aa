"""`discreet audit`: attacks on a configuration, and their bounds beside its claim."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import _console as console
from discreet.cli import _shared as shared
from discreet.cli._options import (
    DEFAULT,
    AsJson,
    Calibration,
    Contributions,
    Delta,
    Dim,
    Epsilon,
    Jobs,
    Neighbours,
    Protects,
    Tree,
    Variant,
    counting,
)

if TYPE_CHECKING:
    from discreet.audit import Audit, Config
    from discreet.privacy import Privacy

_MOST_TRIALS = 10**8
_MOST_ROWS = 10**7


def audit(
    *,
    variant: Variant = DEFAULT,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    dim: Dim = 2,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help=r"Name of an attack; can be given several times. \[default: all attacks]",
            metavar="NAME",
        ),
    ] = None,
    trials: Annotated[
        int,
        counting(
            "--trials",
            about="Number of learners that are made for each of two worlds.",
            most=_MOST_TRIALS,
        ),
    ] = 100_000,
    horizon: Annotated[
        int | None,
        counting(
            "--horizon",
            about="Rounds of a learner in attacks on several releases. "
            r"\[default: enough for 8 releases]",
            most=_MOST_ROWS,
        ),
    ] = None,
    noise: Annotated[
        str, typer.Option(help="How noise is drawn: exact (whole numbers) or float.")
    ] = "exact",
    contributions: Contributions = 1,
    neighbours: Neighbours = "replacement",
    protects: Protects = "rows",
    calibration: Calibration = None,
    tree: Tree = None,
    confidence: Annotated[
        float, typer.Option(help="Probability that a bound is true, for each by itself.")
    ] = 0.999,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Attack a variant, and print what each attack proves about epsilon beside the claim.

    Takes minutes. Exit code 1 if an attack proves an epsilon above the claim.
    """
    from discreet import audit as audits
    from discreet.privacy import Privacy

    target = Privacy(
        epsilon=epsilon,  # type: ignore[arg-type]  # they have defaults here
        delta=delta,  # type: ignore[arg-type]  # as above
        contributions_per_user=contributions,
        neighbours=neighbours,
        protects=protects,
    )
    if dim > 0:  # smaller ones get a better message below
        shared.require_memory("--dim", 4 * dim**2)
    config = _config(variant, calibration, tree, target, dim=dim, horizon=horizon, noise=noise)
    names = tuple(attack) if attack else tuple(audits.ATTACKS)
    with console.progress(len(names)) as on_attack:
        found = audits.run(
            config,
            attacks=names,
            trials=trials,
            confidence=confidence,
            jobs=shared.workers(jobs),
            delta=delta,
            on_attack=on_attack,
        )
    if as_json:
        console.print_json(found.to_json())
    else:
        _show(found)
    if found.violated:
        sys.exit(1)


def _config(
    variant: str,
    calibration: str | None,
    tree: str | None,
    target: "Privacy",
    *,
    dim: int,
    horizon: int | None,
    noise: str,
) -> "Config":
    from discreet.audit import Config
    from discreet.problem import Problem

    row = shared.variant(variant, calibration=calibration, tree=tree)
    return Config(
        problem=Problem(dim=dim, action_norm=1.0, reward_bound=1.0, theta_norm=1.0),
        privacy=target if row.private else None,
        variant=row,
        horizon=horizon,
        noise=noise,
    )


def _show(found: "Audit") -> None:
    columns, rows = found.table()
    console.print_table(f"audit: {found.variant}", columns, rows)
    for finding in found.findings:
        if finding.note:
            console.print_text(f"- {finding.attack}: {finding.note}")
    console.print_text(
        f"Each bound is true with a probability of {100 * found.findings[0].confidence:g}%. "
        "A bound below the claim does not prove it."
    )
    console.print_text(found.guarantee)
