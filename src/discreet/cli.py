"""The command line: thin. It parses, calls one function, and prints a table or one JSON object."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from discreet import __version__, console
from discreet.errors import DiscreetError, ParameterError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# Newer releases of typer carry click inside and older ones depend on it: take the common base of
# usage errors from wherever typer has it.
_UsageTrouble: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


def _count(text: str) -> int:
    """A whole number, also as 5e7 or 1_000_000."""
    try:
        number = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None
    if not number.is_integer():
        raise typer.BadParameter(f"{text!r} is not a whole number")
    return int(number)


def _counting(*names: str, about: str) -> Any:  # noqa: ANN401  # typer's own type is private
    return typer.Option(*names, help=about, parser=_count, metavar="N")


Variant = Annotated[
    str, typer.Option(help="A row of the table of variants; `discreet variants` lists them.")
]
Horizon = Annotated[int, _counting("--horizon", about="The most rounds that will be played.")]
Dim = Annotated[int, _counting("--dim", about="Number of features.")]
Epsilon = Annotated[
    float | None, typer.Option(help="Privacy loss bound; private variants need it.")
]
Delta = Annotated[float | None, typer.Option(help="Its exception; private variants need it.")]
FailureProb = Annotated[
    float | None, typer.Option(help="Failure probability of all bounds together; 1/horizon.")
]
Tree = Annotated[
    str | None, typer.Option(help="pan-private (default) or covering (Gaussian noise only).")
]
Shift = Annotated[float | None, typer.Option(help="A shift of your own instead of the variant's.")]
RhoMin = Annotated[
    float | None, typer.Option(help="The same, given as the lower bound of the regularizer.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


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
    variant: Variant,
    horizon: Horizon,
    dim: Dim,
    epsilon: Epsilon = None,
    delta: Delta = None,
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
    tree: Tree = None,
    shift: Shift = None,
    rho_min: RhoMin = None,
    as_json: AsJson = False,
) -> None:
    """Say what the theory promises before any data: noise, bounds, regret."""
    from discreet.mechanism import Setting
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
    setting = Setting(problem=problem, horizon=horizon, failure_prob=failure_prob)  # type: ignore[arg-type]
    row = _variant(variant, tree=tree, shift=shift, rho_min=rho_min)
    found = planned(row, setting, _privacy(row.private, epsilon, delta), gap=gap)
    if as_json:
        console.print_json(found)
        return
    guarantee = found.pop("guarantee")
    console.print_table(f"plan: {found.pop('variant')}", ["quantity", "value"], list(found.items()))
    console.print_text(guarantee["text"])


@app.command()
def simulate(
    variant: Variant,
    horizon: Horizon,
    env: Annotated[str, typer.Option(help="sphere, fixed or basis.")] = "sphere",
    dim: Dim = 5,
    actions: Annotated[
        int | None, _counting("--actions", about="Actions in a decision set; dim squared.")
    ] = None,
    gap: Annotated[float, typer.Option(help="Suboptimality gap (sphere only).")] = 0.0,
    rewards: Annotated[str, typer.Option(help="signs or gaussian.")] = "signs",
    rounds: Annotated[
        int | None, _counting("--rounds", about="Rounds to play; the horizon.")
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    failure_prob: FailureProb = None,
    policy: Annotated[str, typer.Option(help="ucb, thompson or greedy.")] = "ucb",
    optimism: Annotated[
        float, typer.Option(help="Multiple of the confidence radius; 1 is the theorem's.")
    ] = 1.0,
    tree: Tree = None,
    shift: Shift = None,
    rho_min: RhoMin = None,
    seeds: Annotated[int, _counting("--seeds", about="How many independent runs.")] = 8,
    first_seed: Annotated[int, _counting("--first-seed", about="The first run's seed.")] = 0,
    jobs: Annotated[
        int | None, _counting("--jobs", about="Worker processes; one per core.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play a variant in a synthetic environment and report its pseudo-regret."""
    from discreet import environments
    from discreet import simulate as simulation
    from discreet.checks import count
    from discreet.mechanism import Setting

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
    row = _variant(variant, tree=tree, shift=shift, rho_min=rho_min)
    setting = Setting(
        problem=environment.problem,
        horizon=horizon,
        failure_prob=failure_prob,  # type: ignore[arg-type]  # None means 1/horizon
    )
    played = simulation.Simulation(
        environment=environment,
        mechanism=row.mechanism(setting, _privacy(row.private, epsilon, delta)),
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
    jobs: Annotated[
        int | None, _counting("--jobs", about="Worker processes; one per core.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play every variant in the paper's setting and write a report. About a minute."""
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


def _variant(name: str, *, tree: str | None, shift: float | None, rho_min: float | None) -> Any:  # noqa: ANN401  # a row of the table
    from discreet.variants import named

    row = named(name)
    if shift is not None and rho_min is not None:
        raise ParameterError("shift", "and --rho-min say the same thing twice; give one of them")
    if tree is not None:
        row = row.with_tree(tree)
    if shift is not None:
        row = row.with_shift(shift)
    if rho_min is not None:
        row = row.with_rho_min(rho_min)
    return row


def _privacy(private: bool, epsilon: float | None, delta: float | None) -> Any:  # noqa: ANN401
    """The target; a variant that promises nothing ignores it, so that sweeps can pass it."""
    from discreet.privacy import Privacy

    if not private:
        if epsilon is not None and delta is not None:
            Privacy(epsilon=epsilon, delta=delta)  # refuse nonsense even where it is not used
        return None
    if epsilon is None:
        raise ParameterError("epsilon", "is missing; private variants need --epsilon")
    if delta is None:
        raise ParameterError("delta", "is missing; private variants need --delta")
    return Privacy(epsilon=epsilon, delta=delta)


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
