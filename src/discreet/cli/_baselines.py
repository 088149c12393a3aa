"""`discreet simulate --baseline`: somebody else's bandit instead of a variant of ours."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.baselines.linear._learner import PlayableRule
    from discreet.simulation.environments import Environment


class Asked(NamedTuple):
    """The privacy target as it was given; None for what was not."""

    epsilon: float | None
    delta: float | None
    protects: str | None


def refuse(name: str, options: Mapping[str, object]) -> None:
    """Refuse options that a baseline has no use for.

    Args:
        name: the baseline.
        options: what was given; None for nothing.

    Raises:
        ParameterError: if one was given.
    """
    for option, value in options.items():
        if value is not None:
            raise ParameterError(option, f"has no meaning for baseline {name!r}; leave it out")


def baseline_rule(
    name: str,
    environment: "Environment",
    *,
    horizon: int | None,
    asked: Asked,
) -> "PlayableRule":
    """The baseline of this name, calibrated for an environment.

    Args:
        name: a linear baseline, or a multi-armed one.
        environment: where it will play.
        horizon: the most rounds; baselines need one.
        asked: the target; those with a delta of 0 do not look at delta.

    Returns:
        What `simulate_linear` plays.

    Raises:
        ParameterError: if there is no such baseline, or something that it needs is missing.
    """
    from discreet.baselines import LINEAR_BASELINES, RULES, linear_rule
    from discreet.baselines.linear._arms_in_world import ArmsInWorld
    from discreet.privacy import Privacy

    if horizon is None:
        raise ParameterError("horizon", "is none, and baselines are made for a known one; give it")
    epsilon, delta, protects = asked
    found = LINEAR_BASELINES.get(name) or RULES.get(name)
    if found is not None and protects not in {None, found.protects}:
        raise ParameterError(
            "protects", f"is {protects!r}, but {name!r} protects {found.protects}; leave it out"
        )
    if name in RULES:
        return ArmsInWorld(name=name, problem=environment.problem, horizon=horizon, epsilon=epsilon)
    if name not in LINEAR_BASELINES:
        known = ", ".join([*LINEAR_BASELINES, *RULES])
        raise ParameterError("baseline", f"is {name!r}; give one of {known}")
    row = LINEAR_BASELINES[name]
    for parameter, value in (("epsilon", epsilon), ("delta", delta)):
        if value is None and not (row.pure and parameter == "delta"):
            raise ParameterError(parameter, f"is missing; baseline {name!r} needs it")
    unused = 0.5 if delta is None else delta
    target = Privacy(epsilon=epsilon, delta=unused, protects=row.protects)  # type: ignore[arg-type]  # what is missing was refused
    return linear_rule(name, problem=environment.problem, horizon=horizon, privacy=target)


def simulate_baseline(
    rule: "PlayableRule",
    name: str,
    environment: "Environment",
    *,
    seeds: range,
    rounds: int | None,
    jobs: int,
    on_seed: Callable[[int], None] | None,
) -> dict[str, Any]:
    """Play a baseline; what ``--json`` prints.

    Args:
        rule: the baseline, calibrated.
        name: what it is called.
        environment: where.
        seeds: which worlds.
        rounds: how many; the horizon if None.
        jobs: worker processes.
        on_seed: called with the number of seeds done, if it is given.

    Returns:
        The same fields as for a variant, as far as they apply.
    """
    from discreet.baselines import simulate_linear

    outcome = simulate_linear(
        rule, environment, seeds=seeds, rounds=rounds, jobs=jobs, on_seed=on_seed
    )
    return {"baseline": name, "complete": True, **outcome.to_json()}
