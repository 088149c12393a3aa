"""The command line: thin. It parses, calls one function, and prints a table or one JSON object."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from discreet import __version__, console
from discreet.commands.audit import audit
from discreet.commands.ledger import ledger
from discreet.errors import DiscreetError, ParameterError
from discreet.options import (
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

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# Newer releases of typer carry click inside and older ones depend on it: take the common base of
# usage errors from wherever typer has it.
_UsageTrouble: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Contextual linear bandits under joint differential privacy."""
    if version:
        print(f"discreet {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
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
    from discreet.planning import plan as planned
    from discreet.problem import Problem

    problem = Problem(
        dim=dim,
        action_norm=action_norm,
        reward_bound=reward_bound,
        theta_norm=theta_norm,
        mean_reward_bound=mean_reward_bound,  # type: ignore[arg-type]  # None means: derive it
        reward_subgaussian=reward_subgaussian,  # type: ignore[arg-type]
    )
    row = _variant(variant, calibration=calibration, tree=tree, shift=shift, rho_min=rho_min)
    setting = _setting(problem, horizon, failure_prob, row)
    target = _privacy(row, epsilon, delta, contributions, neighbours)
    found = planned(row, setting, target, gap=gap)
    if gap is not None and "gap_regret_bound" not in found:
        console.note(f"--gap is not used: variant {variant} has no regret theorem")
    if as_json:
        console.print_json(found)
        return
    guarantee = found.pop("guarantee")
    console.print_table(f"plan: {found.pop('variant')}", ["quantity", "value"], list(found.items()))
    console.print_text(guarantee["text"])


@app.command()
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
    from discreet import environments
    from discreet import simulate as simulation
    from discreet.checks import count

    scatter = _one_of("rewards", rewards, environments.REWARDS)
    wanted = dim**2 if actions is None else actions
    makers = {
        "sphere": lambda: environments.Sphere(dim=dim, n_actions=wanted, gap=gap, rewards=scatter),
        "fixed": lambda: environments.Fixed(dim=dim, n_actions=wanted, rewards=scatter),
        "basis": lambda: environments.Basis(dim=dim, rewards=scatter),
    }
    environment = _one_of("env", env, makers)()
    if gap != 0.0 and env != "sphere":
        console.note(f"--gap has no meaning in the {env} environment and is not used")
    if actions is not None and environment.n_actions != actions:
        console.note(
            f"--actions is not used: the {env} environment has {environment.n_actions} actions"
        )
    if horizon == OPEN and rounds is None:
        raise ParameterError("rounds", "is missing; without a horizon simulations need --rounds")
    row = _variant(variant, calibration=calibration, tree=tree, shift=shift, rho_min=rho_min)
    setting = _setting(environment.problem, horizon, failure_prob, row)
    target = _privacy(row, epsilon, delta, contributions, neighbours)
    played = simulation.Simulation(
        environment=environment,
        mechanism=row.mechanism(setting, target),
        rounds=setting.horizon if rounds is None else rounds,
        policy=_policy(policy, optimism),
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
        ("rounds", f"{played.rounds:,} of a horizon of {setting.horizon:,}"),
        ("seeds", found["seeds"]),
        ("pseudo-regret", f"{regret['mean']:.6g}{spread} (standard error over seeds)"),
        ("rounds per second", f"{found['rounds_per_second']:,.0f} on {workers} workers"),
    ]
    console.print_table(f"simulate: {variant}", ["what", "value"], rows)
    console.print_text(found["guarantee"]["text"])


@app.command()
def variants(as_json: AsJson = False) -> None:
    """List the variants."""
    from discreet.variants import VARIANTS

    if as_json:
        console.print_json({row.name: row.summary for row in VARIANTS.values()})
    else:
        rows = [(row.name, row.summary) for row in VARIANTS.values()]
        console.print_table("variants", ["name", "what it is"], rows)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Play every variant in the paper's setting and write a report. A minute or two."""
    from discreet import demo as show

    workers = os.cpu_count() or 1 if jobs is None else jobs
    out.mkdir(parents=True, exist_ok=True)  # rather fail now than after a minute's work
    with console.progress(show.STEPS) as on_step:
        result = show.run(jobs=workers, on_step=on_step)
    page = show.write_report(result, out)
    if as_json:
        console.print_json({"report": str(page), **result.to_json()})
        return
    for title, columns, rows in result.tables():
        console.print_table(title, columns, rows)
    console.print_text(f"The regret curves are in {page}; open it in a browser.")


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(help="dimension, variants, shifts, ..., or all.")],
    out: Annotated[Path, typer.Option(help="Folder of the run; an unfinished one is continued.")],
    scale: Annotated[str, typer.Option(help="smoke, quick or full.")] = "quick",
    jobs: Jobs = None,
    backend: Annotated[str, typer.Option(help="loky, dask or ray.")] = "loky",
    address: Annotated[
        str | None, typer.Option(help="An existing Dask or Ray cluster; else a local one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments again and check what it says of them."""
    from discreet.experiments import reproduce as again

    request = again.Request(
        name=experiment,
        scale=_one_of("scale", scale, again.SCALES),
        out=out,
        jobs=os.cpu_count() or 1 if jobs is None else jobs,
        backend=backend,
        address=address,
    )
    steps = again.Steps(len(request.plan().tasks))
    try:
        with console.progress(steps.total) as on_step:
            findings = again.reproduce(request, on_cell=steps.heard_by(on_step))
    except KeyboardInterrupt:
        console.note(f"interrupted; {steps.kept(out)}")
        sys.exit(130)
    if as_json:
        console.print_json(findings.to_json())
        return
    for title, rows in findings.tables():
        console.print_table(title, ["claim", "measured", "published", "verdict"], rows)
    console.print_text(f"The report is {findings.files[0]}; open it in a browser.")


@app.command()
def bench(
    only: Annotated[
        list[str] | None, typer.Option(help="A section; give it again for another. All if not.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Less of everything.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Memory over 50,000,000 rounds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure speed, start-up and memory beside other ways to do the same. Minutes."""
    from dataclasses import replace

    from discreet.bench import suite, workload

    sizes = workload.QUICK if quick else workload.DEFAULT
    if full:
        sizes = replace(sizes, memory_rounds=(sizes.memory_rounds[0], workload.HORIZON))
    with console.progress(len(only or suite.SECTIONS)) as on_step:
        result = suite.run(sizes, only=only or (), on_step=on_step)
    if as_json:
        console.print_json(result.to_json())
        return
    for (title, columns, rows), remarks in result.tables():
        console.print_table(title, columns, list(rows))
        for remark in remarks:
            console.print_text(f"- {remark}")


app.command()(audit)
app.command()(ledger)


def _variant(
    name: str,
    *,
    calibration: str | None,
    tree: str | None,
    shift: float | None,
    rho_min: float | None,
) -> Any:  # noqa: ANN401  # a row of the table
    from discreet.variants import named

    row: Any = named(name)
    if shift is not None and rho_min is not None:
        raise ParameterError("shift", "and --rho-min say the same thing twice; give one of them")
    if calibration is not None:
        row = row.with_calibration(calibration)
    if tree is not None:
        row = row.with_tree(tree)
    if shift is not None:
        row = row.with_shift(shift)
    if rho_min is not None:
        row = row.with_rho_min(rho_min)
    return row


def _setting(problem: Any, horizon: int | str, failure_prob: float | None, row: Any) -> Any:  # noqa: ANN401
    from discreet.mechanism import Setting

    rounds = None if horizon == OPEN else int(horizon)
    return Setting.over(problem, rounds, failure_prob, open_ended=row.open_ended)


def _privacy(
    row: Any,  # noqa: ANN401
    epsilon: float | None,
    delta: float | None,
    contributions: int,
    neighbours: str,
) -> Any:  # noqa: ANN401
    """The target; a variant that promises nothing ignores it, so that sweeps can pass it."""
    from discreet.privacy import Privacy

    if row.private and epsilon is None:
        raise ParameterError("epsilon", "is missing; private variants need --epsilon")
    if row.private and delta is None:
        raise ParameterError("delta", "is missing; private variants need --delta")
    if epsilon is None or delta is None:
        return None
    target = Privacy(
        epsilon=epsilon,
        delta=delta,
        contributions_per_user=contributions,
        neighbours=neighbours,
    )  # refuses nonsense, even where it is not used
    return target if row.private else None


def _policy(name: str, optimism: float) -> Any:  # noqa: ANN401
    from discreet.policy import UCB, Thompson, greedy

    makers = {
        "ucb": lambda: UCB(optimism=optimism),
        "thompson": lambda: Thompson(optimism=optimism),
        "greedy": greedy,
    }
    return _one_of("policy", name, makers)()


def _one_of(parameter: str, name: str, table: dict[str, Any]) -> Any:  # noqa: ANN401
    if name not in table:
        raise ParameterError(parameter, f"is {name!r}; give one of {', '.join(table)}")
    return table[name]


def _fail(message: str) -> NoReturn:
    console.note(" ".join(message.split()))
    sys.exit(2)


def main() -> None:
    """Run a command; anything that goes wrong is one line on standard error and exit code 2."""
    command = typer.main.get_command(app)
    try:
        command.main(prog_name="discreet", standalone_mode=False)
    except _UsageTrouble as error:
        _fail(f"{error.format_message()} (see discreet --help)")
    except (typer.Abort, KeyboardInterrupt):
        console.note("interrupted")
        sys.exit(130)
    except DiscreetError as error:
        _fail(str(error))
    except OSError as error:
        _fail(str(error))
    except MemoryError:
        _fail("this needs more memory than there is; give smaller sizes")


if __name__ == "__main__":
    main()
