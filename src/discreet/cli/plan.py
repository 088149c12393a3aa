"""`discreet plan`: what the theory says before any data."""

from typing import Annotated

import typer

from discreet.cli import _console as console
from discreet.cli import _shared as shared
from discreet.cli._options import (
    AsJson,
    Calibration,
    Contributions,
    Delta,
    Dim,
    Epsilon,
    FailureProb,
    Horizon,
    Neighbours,
    RhoMin,
    Shift,
    Tree,
    Variant,
)


def plan(
    horizon: Horizon,
    dim: Dim,
    variant: Variant = "tight",
    epsilon: Epsilon = None,
    delta: Delta = None,
    contributions: Contributions = 1,
    neighbours: Neighbours = "replacement",
    failure_prob: FailureProb = None,
    action_norm: Annotated[float, typer.Option(help="Bound on the norm of an action.")] = 1.0,
    reward_bound: Annotated[float, typer.Option(help="Bound on a reward's absolute value.")] = 1.0,
    theta_norm: Annotated[float, typer.Option(help="Bound on the parameter's norm.")] = 1.0,
    mean_reward_bound: Annotated[
        float | None, typer.Option(help="Bound on a mean reward, at least 1; else derived.")
    ] = None,
    reward_subgaussian: Annotated[
        float | None, typer.Option(help="Sub-Gaussian scale of rewards; else reward-bound.")
    ] = None,
    gap: Annotated[
        float | None, typer.Option(help="Suboptimality gap, for the gap-dependent bound.")
    ] = None,
    calibration: Calibration = None,
    tree: Tree = None,
    shift: Shift = None,
    rho_min: RhoMin = None,
    as_json: AsJson = False,
) -> None:
    """Say what the theory promises before any data: noise, bounds, regret."""
    from discreet.mechanism.planning import plan as planned
    from discreet.problem import Problem

    problem = Problem(
        dim=dim,
        action_norm=action_norm,
        reward_bound=reward_bound,
        theta_norm=theta_norm,
        mean_reward_bound=mean_reward_bound,  # type: ignore[arg-type]  # None means: derive it
        reward_subgaussian=reward_subgaussian,  # type: ignore[arg-type]
    )
    row = shared.variant(variant, calibration=calibration, tree=tree, shift=shift, rho_min=rho_min)
    rounds = shared.rounds(horizon)
    found = planned(
        row,
        problem,
        horizon=rounds,
        privacy=shared.privacy(row, epsilon, delta, contributions, neighbours),
        failure_prob=failure_prob,
        gap=gap,
    )
    if gap is not None and "gap_regret_bound" not in found:
        console.note(f"--gap is not used: variant {variant} has no regret theorem")
    if as_json:
        console.print_json(found)
        return
    guarantee = found.pop("guarantee")
    console.print_table(f"plan: {found.pop('variant')}", ["quantity", "value"], list(found.items()))
    console.print_text(guarantee["text"])
