"""What several commands need: settings made from options, and how a command fails."""

import os
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from discreet._checks import count
from discreet.cli import _console as console
from discreet.cli._options import OPEN
from discreet.errors import DiscreetError, ParameterError

if TYPE_CHECKING:
    from discreet.privacy import Privacy

_CALIBRATIONS = {"exact": "gdp"}  # another name for one
_ARGUMENT = re.compile(r"\bpass (\w+)='(\w+)'")  # as errors of the library advise it
# Options that have another name than what they set.
_OPTIONS = {"contributions_per_user": "--contributions", "environment": "--env"}


def variant(
    name: str,
    *,
    calibration: str | None,
    tree: str | None,
    shift: float | None = None,
    rho_min: float | None = None,
) -> Any:  # noqa: ANN401  # a row of the table
    """The row of the table of variants, with the choices that options exchange."""
    from discreet.mechanism.variants import named

    row: Any = named(name)
    if shift is not None and rho_min is not None:
        raise ParameterError("shift", "and --rho-min say the same thing twice; give one of them")
    if calibration is not None:
        row = row.with_calibration(_CALIBRATIONS.get(calibration, calibration))
    if tree is not None:
        row = row.with_tree(tree)
    if shift is not None:
        row = row.with_shift(shift)
    if rho_min is not None:
        row = row.with_rho_min(rho_min)
    return row


def rounds(horizon: int | str) -> int | None:
    """The horizon as the library takes it: None if it is not known."""
    return None if horizon == OPEN else count("horizon", horizon)


def privacy(
    row: Any,  # noqa: ANN401  # a row of the table
    epsilon: float | None,
    delta: float | None,
    contributions: int,
    neighbours: str,
    protects: str,
) -> "Privacy | None":
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
        protects=protects,
    )  # refuses nonsense, even where it is not used
    return target if row.private else None


def policy(mechanism: Any, name: str | None, **numbers: float | None) -> Any:  # noqa: ANN401  # any rule
    """The policy of a name, or a mechanism's own, with the numbers that were given.

    Args:
        mechanism: What it chooses from the releases of.
        name: posterior, ucb, thompson or greedy; None for the mechanism's own.
        numbers: The policy's numbers by name; None where it keeps its own.

    Returns:
        The policy.

    Raises:
        ParameterError: There is no such policy, or it has no such number.
    """
    from discreet.release import policies

    name = mechanism.policy if name is None else name
    maker = one_of("policy", name, {**policies.RULES, "greedy": policies.greedy})
    given = {key: number for key, number in numbers.items() if number is not None}
    owners = {
        key: [rule for rule, kind in policies.RULES.items() if key in kind.__dataclass_fields__]
        for key in given
    }
    for key, rules in owners.items():
        if name not in rules:
            raise ParameterError(
                key, f"has no meaning for policy {name!r}, only for {' and '.join(rules)}"
            )
    return policies.settled(replace(maker(), **given), mechanism)


def workers(jobs: int | None) -> int:
    """How many processes to use: as many as asked for, or one per core."""
    from discreet._checks import count

    return os.cpu_count() or 1 if jobs is None else count("jobs", jobs)


def require_memory(options: str, numbers: int) -> None:
    """Refuse sizes that are beyond this machine, before any work is done.

    Args:
        options: What the sizes were given by.
        numbers: How many floating-point numbers it takes at least.

    Raises:
        ParameterError: They do not fit in its memory.
    """
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return
    if 8 * numbers > memory:
        raise ParameterError(
            options,
            f"would need at least {8 * numbers / 2**30:,.0f} GiB of memory and this machine has "
            f"{memory / 2**30:,.0f}; give smaller numbers",
        )


def one_of(parameter: str, name: str, table: dict[str, Any]) -> Any:  # noqa: ANN401  # any entry
    """The entry of that name, or an error that lists the names."""
    if name not in table:
        raise ParameterError(parameter, f"is {name!r}; give one of {', '.join(table)}")
    return table[name]


def told(error: DiscreetError) -> str:
    """An error in one line, in the words of the command line: with options for arguments."""
    advice = _ARGUMENT.sub(lambda found: f"pass {_option(found[1])} {found[2]}", error.advice)
    return f"{_OPTIONS.get(error.parameter, error.parameter)}: {advice}"


def _option(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def fail(message: str) -> NoReturn:
    """End with one line on standard error and exit code 2."""
    console.note(" ".join(message.split()))
    sys.exit(2)
