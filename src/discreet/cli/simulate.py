"""`discreet simulate`: a variant in a synthetic environment."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from discreet._checks import count
from discreet.cli import _baselines as baselines
from discreet.cli import _console as console
from discreet.cli import _shared as shared
from discreet.cli._options import (
    DEFAULT,
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
    from discreet.mechanism import Mechanism
    from discreet.simulation.environments import Environment

_MOST_ROUNDS = 10**13  # weeks
_MOST_SEEDS = 10**6
# Of the options that only variants have; where there is none here, it is None.
_DEFAULTS = {"variant": DEFAULT, "contributions": 1, "neighbours": "replacement", "device": "cpu"}
_Rows = list[tuple[str, Any]]


class _Scene(NamedTuple):
    """Where something is played, and how much, whatever it is."""

    environment: "Environment"
    place: str
    rounds: int
    horizon: int | None
    seeds: range
    workers: int


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
    from discreet.mechanism.variants import calibrate

    many = _seeds(first_seed, seeds)
    environment = _environment(env, dim=dim, actions=actions, gap=gap, rewards=rewards)
    environment = _drifting(environment, flip, turn)
    length = shared.rounds(horizon)
    scene = _Scene(
        environment=environment,
        place=f"{env}, dim {dim}, {environment.n_actions} actions" + _drift(flip, turn),
        rounds=_rounds(length, rounds),
        horizon=length,
        seeds=many,
        workers=shared.workers(jobs),
    )
    _note_unused(environment, env, gap=gap, actions=actions)
    choices: dict[str, Any] = {
        "calibration": calibration,
        "tree": tree,
        "shift": shift,
        "rho_min": rho_min,
    }
    numbers = {
        "optimism": optimism,
        "deviations": deviations,
        "growth": growth,
        "dither": dither,
        "uniform": uniform,
    }
    if baseline is not None:
        of_variants = {
            "variant": variant,
            "contributions": contributions,
            "neighbours": neighbours,
            "policy": policy,
            **numbers,
            "memory": memory,
            **choices,
            "failure_prob": failure_prob,
            "device": device,
        }
        baselines.refuse(baseline, _changed(of_variants))
        asked = baselines.Asked(epsilon, delta, protects)
        _show(baseline, *_play_baseline(scene, baseline, asked), as_json=as_json)
        return
    row = shared.variant(variant, **choices)
    protected = "rows" if protects is None else protects
    mechanism = calibrate(
        row,
        environment.problem,
        horizon=length,
        privacy=shared.privacy(row, epsilon, delta, contributions, neighbours, protected),
        failure_prob=failure_prob,
        memory=memory,
    )
    rule = shared.policy(mechanism, policy, **numbers)
    _show(variant, *_play_variant(scene, mechanism, rule, device), as_json=as_json)


def _seeds(first: int, seeds: int) -> range:
    start = count("first-seed", first, least=0)
    return range(start, start + count("seeds", seeds))


def _environment(
    name: str, *, dim: int, actions: int | None, gap: float, rewards: str
) -> "Environment":
    """The environment of a name, if this machine has the memory for it."""
    from discreet.simulation import environments

    scatter = shared.one_of("rewards", rewards, environments.REWARDS)
    wanted = dim**2 if actions is None else actions
    if min(dim, wanted) > 0:  # smaller ones get a better message below
        shared.require_memory("--dim and --actions", dim * (dim + wanted))
    makers = {
        "sphere": lambda: environments.Sphere(dim=dim, n_actions=wanted, gap=gap, rewards=scatter),
        "fixed": lambda: environments.Fixed(dim=dim, n_actions=wanted, rewards=scatter),
        "basis": lambda: environments.Basis(dim=dim, rewards=scatter),
        "clusters": lambda: environments.Clusters(dim=dim, n_actions=wanted, rewards=scatter),
    }
    made: Environment = shared.one_of("env", name, makers)()
    return made


def _rounds(horizon: int | None, rounds: int | None) -> int:
    """How many rounds are played: the horizon, if nothing else is said."""
    asked = horizon if rounds is None else rounds
    if asked is None:
        raise ParameterError("rounds", "is missing; without a horizon simulations need --rounds")
    if asked > _MOST_ROUNDS:
        raise ParameterError(
            "rounds", f"is {asked:g}, which would take years; give --rounds of at most 1e13"
        )
    return asked


def _changed(options: dict[str, Any]) -> dict[str, Any]:
    """The options by the names that they have on the command line; None for what is a default."""
    return {
        name.replace("_", "-"): None if value == _DEFAULTS.get(name) else value
        for name, value in options.items()
    }


def _play_variant(
    scene: _Scene,
    mechanism: "Mechanism",
    policy: Any,  # noqa: ANN401  # one of several
    device: str,
) -> tuple[dict[str, Any], _Rows]:
    """Play a variant: what ``--json`` prints, and the rows of the table."""
    from discreet import simulation

    played = simulation.Simulation(
        environment=scene.environment, mechanism=mechanism, rounds=scene.rounds, policy=policy
    )
    uniform_rounds = mechanism.schedule.after(0)
    if uniform_rounds > played.rounds:
        console.note(
            f"the first release comes after {uniform_rounds:,} rounds, and only {played.rounds:,} "
            "are played: nothing is learned"
        )
    with console.progress(len(scene.seeds), played.rounds) as on_seed:
        outcome = simulation.simulate(
            played, seeds=scene.seeds, jobs=scene.workers, device=device, on_seed=on_seed
        )
    found = outcome.to_json()
    if not found["complete"]:
        console.note(f"interrupted: {found['seeds']} of {outcome.asked} seeds are in the result")
    memory = mechanism.memory
    return found, [
        ("environment", scene.place),
        ("rounds", f"{played.rounds:,} of a horizon of {mechanism.setting.horizon:,}"),
        ("policy", _told(found["policy"])),
        *([] if memory is None else [("memory", f"{memory:,} rows")]),
        *_regret_rows(found, "a GPU" if device == "cuda" else f"{scene.workers} workers"),
    ]


def _play_baseline(
    scene: _Scene, name: str, asked: baselines.Asked
) -> tuple[dict[str, Any], _Rows]:
    """Play a baseline: what ``--json`` prints, and the rows of the table."""
    rule = baselines.baseline_rule(name, scene.environment, horizon=scene.horizon, asked=asked)
    with console.progress(len(scene.seeds), scene.rounds) as on_seed:
        found = baselines.simulate_baseline(
            rule,
            name,
            scene.environment,
            seeds=scene.seeds,
            rounds=scene.rounds,
            jobs=scene.workers,
            on_seed=on_seed,
        )
    return found, [
        ("environment", scene.place),
        ("rounds", f"{found['rounds']:,} of a horizon of {rule.horizon:,}"),
        ("protects", found["protects"]),
        ("trust", found["trust"]),
        *_regret_rows(found, f"{scene.workers} workers"),
    ]


def _show(name: str, found: dict[str, Any], rows: _Rows, *, as_json: bool) -> None:
    """Print what was found, as JSON or as a table with the guarantee below it."""
    if as_json:
        console.print_json(found)
        return
    console.print_table(f"simulate: {name}", ["what", "value"], rows)
    console.print_text(found["guarantee"]["text"])


def _regret_rows(found: dict[str, Any], workers: str) -> _Rows:
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
