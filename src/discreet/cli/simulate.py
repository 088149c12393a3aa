"""`discreet simulate`: a variant in a synthetic environment."""

import os
from typing import Annotated

import typer

from discreet.cli import _console as console
from discreet.cli import _shared as shared
from discreet.cli._options import (
    OPEN,
    AsJson,
    Calibration,
    Contributions,
    Delta,
    Dim,
    Epsilon,
    FailureProb,
    Horizon,
    Jobs,
    Neighbours,
    RhoMin,
    Shift,
    Tree,
    Variant,
    counting,
)
from discreet.errors import ParameterError


def simulate(
    horizon: Horizon,
    variant: Variant = "tight",
    env: Annotated[str, typer.Option(help="sphere, fixed or basis.")] = "sphere",
    dim: Dim = 5,
    actions: Annotated[
        int | None, counting("--actions", about="Actions in a decision set; dim squared.")
    ] = None,
    gap: Annotated[float, typer.Option(help="Suboptimality gap (sphere only).")] = 0.0,
    rewards: Annotated[str, typer.Option(help="signs or gaussian.")] = "signs",
    rounds: Annotated[
        int | None, counting("--rounds", about="Rounds to play; the horizon.")
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    contributions: Contributions = 1,
    neighbours: Neighbours = "replacement",
    failure_prob: FailureProb = None,
    policy: Annotated[str, typer.Option(help="ucb, thompson or greedy.")] = "ucb",
    optimism: Annotated[
        float, typer.Option(help="Multiple of the confidence radius; 1 is the theorem's.")
    ] = 1.0,
    calibration: Calibration = None,
    tree: Tree = None,
    shift: Shift = None,
    rho_min: RhoMin = None,
    seeds: Annotated[int, counting("--seeds", about="How many independent runs.")] = 8,
    first_seed: Annotated[int, counting("--first-seed", about="The first run's seed.")] = 0,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Play a variant in a synthetic environment and report its pseudo-regret."""
    from discreet import simulation
    from discreet._checks import count
    from discreet.mechanism.variants import calibrate
    from discreet.simulation import environments

    scatter = shared.one_of("rewards", rewards, environments.REWARDS)
    wanted = dim**2 if actions is None else actions
    makers = {
        "sphere": lambda: environments.Sphere(dim=dim, n_actions=wanted, gap=gap, rewards=scatter),
        "fixed": lambda: environments.Fixed(dim=dim, n_actions=wanted, rewards=scatter),
        "basis": lambda: environments.Basis(dim=dim, rewards=scatter),
    }
    environment = shared.one_of("env", env, makers)()
    if gap != 0.0 and env != "sphere":
        console.note(f"--gap has no meaning in the {env} environment and is not used")
    if actions is not None and environment.n_actions != actions:
        console.note(
            f"--actions is not used: the {env} environment has {environment.n_actions} actions"
        )
    if horizon == OPEN and rounds is None:
        raise ParameterError("rounds", "is missing; without a horizon simulations need --rounds")
    row = shared.variant(variant, calibration=calibration, tree=tree, shift=shift, rho_min=rho_min)
    mechanism = calibrate(
        row,
        environment.problem,
        horizon=shared.rounds(horizon),
        privacy=shared.privacy(row, epsilon, delta, contributions, neighbours),
        failure_prob=failure_prob,
    )
    played = simulation.Simulation(
        environment=environment,
        mechanism=mechanism,
        rounds=mechanism.setting.horizon if rounds is None else rounds,
        policy=shared.policy(policy, optimism),
    )
    first = count("first-seed", first_seed, least=0)
    many = range(first, first + count("seeds", seeds))
    workers = os.cpu_count() or 1 if jobs is None else jobs
    with console.progress(len(many), played.rounds) as on_seed:
        outcome = simulation.simulate(played, seeds=many, jobs=workers, on_seed=on_seed)
    found = outcome.to_json()
    if not found["complete"]:
        console.note(f"interrupted: {found['seeds']} of {outcome.asked} seeds are in the result")
    if as_json:
        console.print_json(found)
        return
    regret = found["pseudo_regret"]
    spread = "" if regret["stderr"] is None else f" +- {regret['stderr']:.4g}"
    rows = [
        ("environment", f"{env}, dim {dim}, {environment.n_actions} actions"),
        ("rounds", f"{played.rounds:,} of a horizon of {mechanism.setting.horizon:,}"),
        ("seeds", found["seeds"]),
        ("pseudo-regret", f"{regret['mean']:.6g}{spread} (standard error over seeds)"),
        ("rounds per second", f"{found['rounds_per_second']:,.0f} on {workers} workers"),
    ]
    console.print_table(f"simulate: {variant}", ["what", "value"], rows)
    console.print_text(found["guarantee"]["text"])
