"""`discreet plan`: what the theory says before any data."""

from typing import Annotated

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
    FailureProb,
    Horizon,
    Neighbours,
    Protects,
    RhoMin,
    Shift,
    Tree,
    Variant,
    counting,
)


def plan(
    horizon: Horizon,
    dim: Dim,
    variant: Variant = DEFAULT,
    epsilon: Epsilon = None,
    delta: Delta = None,
    contributions: Contributions = 1,
    neighbours: Neighbours = "replacement",
    protects: Protects = "rows",
    failure_prob: FailureProb = None,
    action_norm: Annotated[
        float, typer.Option(help="Bound on the Euclidean norm of an action.")
    ] = 1.0,
    reward_bound: Annotated[
        float, typer.Option(help="Bound on the absolute value of a reward.")
    ] = 1.0,
    theta_norm: Annotated[
        float, typer.Option(help="Bound on the Euclidean norm of the unknown parameter.")
    ] = 1.0,
    mean_reward_bound: Annotated[
        float | None,
        typer.Option(
            help="Bound on the absolute value of a mean reward, at least 1. "
            r"\[default: what the other bounds imply]"
        ),
    ] = None,
    reward_subgaussian: Annotated[
        float | None,
        typer.Option(help=r"Sub-Gaussian scale of a reward. \[default: the reward bound]"),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option(
            help="How much worse than the best action all others are, at least: adds a regret "
            "bound that depends on it."
        ),
    ] = None,
    actions: Annotated[
        int,
        counting("--actions", about="Number of actions in a decision set, for half_gain_rows."),
    ] = 25,
    best: Annotated[
        float,
        typer.Option(
            help="Mean reward of a round's best action, as a share of the largest that the bounds "
            "allow, for half_gain_rows."
        ),
    ] = 0.75,
    calibration: Calibration = None,
    tree: Tree = None,
    shift: Shift = None,
    rho_min: RhoMin = None,
    as_json: AsJson = False,
) -> None:
    """Show what the theory promises before there is any data: noise, bounds, regret."""
    from discreet._checks import count
    from discreet.mechanism.planning import plan as planned
    from discreet.problem import Problem

    if dim > 0:  # smaller ones get a better message below
        shared.require_memory("--dim", dim**2)
    problem = Problem(
        dim=dim,
        action_norm=action_norm,
        reward_bound=reward_bound,
        theta_norm=theta_norm,
        mean_reward_bound=mean_reward_bound,  # type: ignore[arg-type]  # None means: derive it
        reward_subgaussian=reward_subgaussian,  # type: ignore[arg-type]  # as above
    )
    row = shared.variant(variant, calibration=calibration, tree=tree, shift=shift, rho_min=rho_min)
    rounds = shared.rounds(horizon)
    found = planned(
        row,
        problem,
        horizon=rounds,
        privacy=shared.privacy(row, epsilon, delta, contributions, neighbours, protects),
        failure_prob=failure_prob,
        gap=gap,
        n_actions=count("actions", actions, least=2),
        best=best,
    )
    if as_json:
        console.print_json(found)
    else:
        rest = {key: value for key, value in found.items() if key not in {"variant", "guarantee"}}
        console.print_table(f"plan: {variant}", ["quantity", "value"], list(rest.items()))
        if "half_gain_rows" in found:
            console.print_text(_outlook(found["half_gain_rows"], actions))
        console.print_text(found["guarantee"]["text"])
    if gap is not None and "gap_regret_bound" not in found:
        reason = f"variant {variant} has no regret theorem"
        if rounds is None and variant == "tight":
            reason = "its bound on regret needs a horizon"
        console.note(f"--gap is not used: {reason}")
    first = found.get("first_release_rows", 0)
    if rounds is not None and first > rounds:
        console.note(
            f"the first release would come after {first:,} rows, beyond the horizon: nothing would "
            "be learned; give a longer horizon or a larger epsilon"
        )
    elif rounds is not None and "half_gain_rows" in found:
        needed = found["half_gain_rows"]
        if needed is None or needed > rounds:
            console.note(
                f"within {rounds:,} rounds this learner will hardly choose better than chance; use "
                "fewer features, a larger epsilon or a longer horizon, and if each action has "
                "features of its own, state them as blocks (Problem(blocks=...))"
            )


def _outlook(rows: int | None, actions: int) -> str:
    """A sentence about ``half_gain_rows``: how many rows learning takes."""
    needed = "more than 10^12 rows" if rows is None else f"about {rows:,} rows"
    return (
        f"It takes {needed} until choices among {actions} actions gain half of what the best "
        "choices gain over chance, if actions vary in all directions and they, the parameter and "
        "the rewards are as large as stated; longer if actions are shorter or differ less."
    )
