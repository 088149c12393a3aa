"""`discreet simulate`: a variant in a synthetic environment."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import _baselines as baselines
from discreet.cli import _console as console
from discreet.cli import _shared as shared
from discreet.cli._options import (
    DEFAULT,
    OPEN,
    AsJson,
    Calibration,
    Contributions,
    Delta,
    Device,
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

if TYPE_CHECKING:
    from discreet.simulation.environments import Environment

_MOST_ROUNDS = 10**13  # weeks
_MOST_SEEDS = 10**6


def simulate(
    horizon: Horizon,
    variant: Variant = DEFAULT,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Somebody else's private bandit instead of a variant: rare-switching, "
            "batched-ts-joint, adac-oful, batched-ts, core-set, shuffle-linucb, ldp-linucb; in "
            "basis also a multi-armed one, such as dp-imed (docs/baselines.md)."
        ),
    ] = None,
    env: Annotated[
        str,
        typer.Option(
            help="The environment: sphere (fresh unit vectors in every round), fixed (the same "
            "ones), basis (one arm for each feature) or clusters (a few groups of people; some "
            "features vary a lot and some hardly)."
        ),
    ] = "sphere",
    dim: Dim = 5,
    actions: Annotated[
        int | None,
        counting("--actions", about=r"Number of actions in a decision set. \[default: dim²]"),
    ] = None,
    gap: Annotated[
        float,
        typer.Option(
            help="How much worse than the best action all others are, at least (sphere only)."
        ),
    ] = 0.0,
    flip: Annotated[
        int | None,
        counting("--flip", about="The true parameter changes its sign after so many rounds."),
    ] = None,
    turn: Annotated[
        int | None,
        counting("--turn", about="The true parameter turns slowly: once in so many rounds."),
    ] = None,
    rewards: Annotated[
        str, typer.Option(help="How rewards scatter: signs (plus or minus 1) or gaussian.")
    ] = "signs",
    rounds: Annotated[
        int | None,
        counting("--rounds", about=r"Number of rounds to play. \[default: the horizon]"),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    contributions: Contributions = 1,
    neighbours: Neighbours = "replacement",
    protects: Annotated[
        str | None,
        typer.Option(
            help="What is protected: rows (decision sets and rewards), or rewards alone, where "
            "decision sets and actions are public (windows and tight only). A baseline has its "
            r"own. \[default: rows]"
        ),
    ] = None,
    failure_prob: FailureProb = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="How actions are chosen: posterior, ucb, thompson or greedy. The paper's LinUCB "
            r"without privacy is --variant nonprivate --policy ucb. \[default: the variant's]"
        ),
    ] = None,
    optimism: Annotated[
        float | None,
        typer.Option(
            help="Multiple of the confidence radius that is used (ucb and thompson only); "
            r"theorems have 1. \[default: 1]"
        ),
    ] = None,
    deviations: Annotated[
        float | None,
        typer.Option(
            help="Posterior deviations that are added to an estimate (posterior only). "
            r"\[default: the policy's]"
        ),
    ] = None,
    growth: Annotated[
        float | None,
        typer.Option(
            help="How many more deviations for each unit of the root of the logarithm of the rows, "
            r"over the features (posterior only). \[default: the policy's]"
        ),
    ] = None,
    dither: Annotated[
        float | None,
        typer.Option(
            help="How far estimates are tilted at random, in multiples of what is not known yet "
            r"(posterior only). \[default: the policy's]"
        ),
    ] = None,
    uniform: Annotated[
        float | None,
        typer.Option(
            help="Share of choices that are made uniformly at random (posterior only). "
            r"\[default: 0]"
        ),
    ] = None,
    memory: Annotated[
        int | None,
        counting(
            "--memory",
            about="How many rows are remembered (windows only): after so many more a row counts e "
            r"times less. \[default: all]",
        ),
    ] = None,
    calibration: Calibration = None,
    tree: Tree = None,
    shift: Shift = None,
    rho_min: RhoMin = None,
    seeds: Annotated[
        int, counting("--seeds", about="Number of independent runs.", most=_MOST_SEEDS)
    ] = 8,
    first_seed: Annotated[
        int, counting("--first-seed", about="Seed of the first run; the next has one more.")
    ] = 0,
    jobs: Jobs = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Play a variant in a synthetic environment and report its pseudo-regret."""
    from discreet import simulation
    from discreet._checks import count
    from discreet.mechanism.variants import calibrate
    from discreet.simulation import environments

    first = count("first-seed", first_seed, least=0)
    many = range(first, first + count("seeds", seeds))
    scatter = shared.one_of("rewards", rewards, environments.REWARDS)
    wanted = dim**2 if actions is None else actions
    processes = shared.workers(jobs)
    if min(dim, wanted) > 0:  # smaller ones get a better message below
        shared.require_memory("--dim and --actions", dim * (dim + wanted))
    makers = {
        "sphere": lambda: environments.Sphere(dim=dim, n_actions=wanted, gap=gap, rewards=scatter),
        "fixed": lambda: environments.Fixed(dim=dim, n_actions=wanted, rewards=scatter),
        "basis": lambda: environments.Basis(dim=dim, rewards=scatter),
        "clusters": lambda: environments.Clusters(dim=dim, n_actions=wanted, rewards=scatter),
    }
    environment = shared.one_of("env", env, makers)()
    environment = _drifting(environment, flip, turn)
    if horizon == OPEN and rounds is None:
        raise ParameterError("rounds", "is missing; without a horizon simulations need --rounds")
    length = shared.rounds(horizon)
    asked = length if rounds is None else rounds
    if asked is not None and asked > _MOST_ROUNDS:
        raise ParameterError(
            "rounds", f"is {asked:g}, which would take years; give --rounds of at most 1e13"
        )
    place = f"{env}, dim {dim}, {environment.n_actions} actions" + _drift(flip, turn)
    _note_unused(environment, env, gap=gap, actions=actions)
    if baseline is not None:
        own = {
            "variant": None if variant == DEFAULT else variant,
            "contributions": None if contributions == 1 else contributions,
            "neighbours": None if neighbours == "replacement" else neighbours,
            "policy": policy,
            "optimism": optimism,
            "deviations": deviations,
            "growth": growth,
            "dither": dither,
            "uniform": uniform,
            "memory": memory,
            "calibration": calibration,
            "tree": tree,
            "shift": shift,
            "rho-min": rho_min,
            "failure-prob": failure_prob,
            "device": None if device == "cpu" else device,
        }
        baselines.refuse(baseline, own)
        _simulate_baseline(
            baseline,
            environment,
            place,
            horizon=length,
            target=baselines.Asked(epsilon, delta, protects),
            many=many,
            rounds=rounds,
            processes=processes,
            as_json=as_json,
        )
        return
    row = shared.variant(variant, calibration=calibration, tree=tree, shift=shift, rho_min=rho_min)
    mechanism = calibrate(
        row,
        environment.problem,
        horizon=length,
        privacy=shared.privacy(
            row, epsilon, delta, contributions, neighbours, "rows" if protects is None else protects
        ),
        failure_prob=failure_prob,
        memory=memory,
    )
    played = simulation.Simulation(
        environment=environment,
        mechanism=mechanism,
        rounds=asked,  # type: ignore[arg-type]  # one of the two was given
        policy=shared.policy(
            mechanism,
            policy,
            optimism=optimism,
            deviations=deviations,
            growth=growth,
            dither=dither,
            uniform=uniform,
        ),
    )
    uniform_rounds = mechanism.schedule.after(0)
    if uniform_rounds > played.rounds:
        console.note(
            f"the first release comes after {uniform_rounds:,} rounds, and only {played.rounds:,} "
            "are played: nothing is learned"
        )
    with console.progress(len(many), played.rounds) as on_seed:
        outcome = simulation.simulate(
            played, seeds=many, jobs=processes, device=device, on_seed=on_seed
        )
    found = outcome.to_json()
    if not found["complete"]:
        console.note(f"interrupted: {found['seeds']} of {outcome.asked} seeds are in the result")
    if as_json:
        console.print_json(found)
        return
    rows = [
        ("environment", place),
        ("rounds", f"{played.rounds:,} of a horizon of {mechanism.setting.horizon:,}"),
        ("policy", _told(found["policy"])),
        *([] if memory is None else [("memory", f"{memory:,} rows")]),
        *_regret_rows(found, "a GPU" if device == "cuda" else f"{processes} workers"),
    ]
    console.print_table(f"simulate: {variant}", ["what", "value"], rows)
    console.print_text(found["guarantee"]["text"])


def _simulate_baseline(
    name: str,
    environment: "Environment",
    place: str,
    *,
    horizon: int | None,
    target: baselines.Asked,
    many: range,
    rounds: int | None,
    processes: int,
    as_json: bool,
) -> None:
    """Play a baseline and print what came of it."""
    rule = baselines.baseline_rule(name, environment, horizon=horizon, asked=target)
    with console.progress(len(many), rounds or rule.horizon) as on_seed:
        found = baselines.simulate_baseline(
            rule, name, environment, seeds=many, rounds=rounds, jobs=processes, on_seed=on_seed
        )
    if as_json:
        console.print_json(found)
        return
    rows = [
        ("environment", place),
        ("rounds", f"{found['rounds']:,} of a horizon of {rule.horizon:,}"),
        ("protects", found["protects"]),
        ("trust", found["trust"]),
        *_regret_rows(found, f"{processes} workers"),
    ]
    console.print_table(f"simulate: {name}", ["what", "value"], rows)
    console.print_text(found["guarantee"]["text"])


def _regret_rows(found: dict[str, Any], workers: str) -> list[tuple[str, Any]]:
    """What came of it: regret over seeds, and speed."""
    regret = found["pseudo_regret"]
    spread = "" if regret["stderr"] is None else f" +- {regret['stderr']:.4g}"
    return [
        ("seeds", found["seeds"]),
        ("pseudo-regret", f"{regret['mean']:.6g}{spread} (standard error over seeds)"),
        ("worst seed", f"{regret['worst']:.6g}"),
        ("rounds per second", f"{found['rounds_per_second']:,.0f} on {workers}"),
    ]


def _note_unused(environment: "Environment", name: str, *, gap: float, actions: int | None) -> None:
    """Say which options have no meaning in this environment."""
    if gap != 0.0 and name != "sphere":
        console.note(f"--gap has no meaning in the {name} environment and is not used")
    if actions is not None and environment.n_actions != actions:
        console.note(
            f"--actions is not used: the {name} environment has {environment.n_actions} actions"
        )


def _drifting(environment: "Environment", flip: int | None, turn: int | None) -> "Environment":
    """The environment, changing if that is asked for."""
    from discreet.simulation import environments

    if flip is None and turn is None:
        return environment
    return environments.Drifting(world=environment, flip=flip, turn=turn)


def _drift(flip: int | None, turn: int | None) -> str:
    """As in: , flips after 100,000 rounds."""
    if flip is not None:
        return f", flips after {flip:,} rounds"
    return "" if turn is None else f", turns once in {turn:,} rounds"


def _told(policy: dict[str, Any]) -> str:
    """As in: ucb, optimism 1."""
    name, *numbers = policy.items()
    return ", ".join([name[1], *(f"{key} {number:g}" for key, number in numbers)])
