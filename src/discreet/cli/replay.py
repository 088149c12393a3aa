"""`discreet replay`: a warm start from a log, and what policies are worth on the rest of it."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import _console as console
from discreet.cli import _options as options
from discreet.cli._options import AsJson, counting
from discreet.errors import ParameterError

_MOST_CHUNK = 10**7
_ABOUT_REWARDS = (
    "with --protects rewards the logged actions are public, and no noise protects what they tell; "
    "if whoever chose them had seen raw rewards, protect rows instead"
)


def replay(
    log: Annotated[
        Path,
        typer.Argument(
            help="The log: a .csv file with names in its first line, or a .parquet file.",
            parser=options.path,
            metavar="LOG",
        ),
    ],
    action: Annotated[
        str, typer.Option(help="Column with the id of the action that was taken.", metavar="COL")
    ],
    reward: Annotated[str, typer.Option(help="Column with its reward.", metavar="COL")],
    epsilon: Annotated[
        float, typer.Option(help="Privacy loss of what the learner shows.", metavar="E")
    ],
    delta: Annotated[
        float, typer.Option(help="Probability that epsilon may be exceeded.", metavar="D")
    ],
    features: Annotated[
        Path | None,
        typer.Option(
            help="The feature map, as JSON. It must not have been made by looking at the log. "
            r"\[default: 32 hashed features]",
            parser=options.path,
            metavar="SPEC.json",
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            help="Column with how probable the action was. Without it all actions are taken to "
            "have been equally probable.",
            metavar="COL",
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            help="Column that says whose row it is. People are then assigned to the parts of the "
            "log by a public hash, and nobody is in both.",
            metavar="COL",
        ),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            help="All actions that could have been taken: ids with commas between, or a .json file "
            r"with a list of ids or of {id, features}, for ids with commas in them too. \[default: "
            "those that the feature map names, or else those in the log]",
            metavar="A,B,...",
        ),
    ] = None,
    reward_low: Annotated[float, typer.Option(help="No reward is below this.")] = 0.0,
    reward_high: Annotated[float, typer.Option(help="No reward is above this.")] = 1.0,
    theta_norm: Annotated[
        float | None,
        typer.Option(
            help="Bound on the norm of the parameter, for rewards minus the middle of their "
            r"bounds. \[default: twice the distance of the bounds]"
        ),
    ] = None,
    clip: Annotated[
        float | None,
        typer.Option(help="No weight, target over propensity, counts more than this."),
    ] = None,
    value_epsilon: Annotated[
        float | None,
        typer.Option(help="Release values with privacy too, at this epsilon; needs --clip."),
    ] = None,
    value_delta: Annotated[float | None, typer.Option(help="The delta of these values.")] = None,
    contributions: Annotated[
        int,
        counting(
            "--contributions-per-user",
            "--contributions",
            about="The most rows of one person. --contributions is the same.",
        ),
    ] = 1,
    neighbours: options.Neighbours = "replacement",
    protects: options.Protects = "rows",
    train: Annotated[
        float, typer.Option(help="The share of rows, or with --subject of people, to learn from.")
    ] = 0.7,
    seed: Annotated[
        int,
        counting("--seed", about="Public key of the hash that assigns people to parts."),
    ] = 0,
    on_violation: Annotated[
        str,
        typer.Option(
            help="What to do with a reward outside the bounds and with a person's rows beyond "
            "--contributions-per-user: error, or clip, to move it to the bound and leave them out."
        ),
    ] = "error",
    chunk: Annotated[
        int, counting("--chunk", about="How many rows are read at a time.", most=_MOST_CHUNK)
    ] = 50_000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Store the learner here in the end, to go on with it.",
            parser=options.path,
            metavar="FILE",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a private learner from a log of decisions and say what its policy is worth."""
    from discreet.privacy import Privacy
    from discreet.replay import Log
    from discreet.replay import replay as replayed

    shared = {"contributions_per_user": contributions, "neighbours": neighbours}
    if (value_epsilon is None) != (value_delta is None):
        raise ParameterError("value-epsilon", "and --value-delta go together; give both, or none")
    value_privacy = None
    if value_epsilon is not None and value_delta is not None:
        value_privacy = Privacy(epsilon=value_epsilon, delta=value_delta, **shared)  # type: ignore[arg-type]  # `shared` has values of two types
    with console.progress(100) as on_percent:

        def on_progress(share: float) -> None:
            if on_percent is not None:
                on_percent(round(100 * share))

        found = replayed(
            Log(path=log, action=action, reward=reward, propensity=propensity, subject=subject),
            privacy=Privacy(epsilon=epsilon, delta=delta, protects=protects, **shared),  # type: ignore[arg-type]  # `shared` has values of two types
            features=None if features is None else _map(features),
            actions=None if actions is None else _actions(actions),
            low=reward_low,
            high=reward_high,
            theta_norm=theta_norm,
            clip=clip,
            value_privacy=value_privacy,
            train=train,
            seed=seed,
            on_violation=on_violation,
            chunk=chunk,
            level=level,
            save=save,
            on_progress=on_progress,
        )
    if protects == "rewards":
        console.note(_ABOUT_REWARDS)
    if as_json:
        console.print_json(found.to_json())
    else:
        _show(found)


def _map(path: Path) -> Any:  # noqa: ANN401  # imported where it is used
    from discreet.features import FeatureMap

    try:
        return FeatureMap.from_json(path.read_bytes())
    except ParameterError as error:
        if error.parameter != "specification":
            raise
        raise ParameterError("features", f"{path} {error.advice}; give a map's to_json()") from None


def _actions(text: str) -> list[Any]:
    if not text.lower().endswith(".json"):
        return [one.strip() for one in text.split(",") if one.strip()]
    try:
        found = json.loads(options.path(text).read_bytes())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise ParameterError("actions", "is no JSON list; give ids, or {id, features} each")
    return found


def _show(found: Any) -> None:  # noqa: ANN401  # a Replay
    beyond = found.rows - found.learned - found.evaluated
    left_out = f"; {beyond:,} are beyond the cap and left out" if beyond else ""
    console.print_text(
        f"Learned from {found.learned:,} of {found.rows:,} rows; values are from "
        f"{found.evaluated:,} others{left_out}. {found.diagnosis}"
    )
    console.print_text(str(found.learner.guarantee))
    values = [*found.exact, *found.differences]
    console.print_table(
        "exact values: for the curator's eyes only",
        ["policy", "estimator", "value", "interval"],
        [_cells(one) for one in values],
    )
    noted: dict[tuple[str, str], list[str]] = {}
    for one in values:
        if one.note:
            noted.setdefault((one.policy, one.note), []).append(one.estimator)
    for (policy, note), estimators in noted.items():
        console.print_text(f"{policy} ({', '.join(estimators)}): {note}.")
    for warning in found.warnings:
        console.print_text(f"Warning, for the curator: {warning}.")
    if found.released is not None:
        console.print_table(
            f"values with privacy: for the eyes of {found.released.audience}",
            ["policy", "estimator", "value", "interval", "note"],
            [(*_cells(one), one.note) for one in found.released],
        )
        console.print_text(str(found.released.guarantee))
    for note in found.notes:
        console.note(note)


def _cells(value: Any) -> tuple[str, ...]:  # noqa: ANN401  # an ExactValue or a PrivateValue
    shown = "none" if value.estimate is None else f"{value.estimate:.5g}"
    ends = "" if value.low is None else f"{value.low:.5g} to {value.high:.5g}"
    return value.policy, value.estimator, shown, ends
