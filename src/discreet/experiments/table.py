"""All experiments, in the order in which a reader meets them. Adding one is a line here."""

from discreet.errors import ParameterError
from discreet.experiments import decision_set, dimension, lower_bounds, price, shifts, variants
from discreet.experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    row.name: row
    for row in (
        decision_set.EXPERIMENT,
        dimension.EXPERIMENT,
        variants.EXPERIMENT,
        shifts.EXPERIMENT,
        lower_bounds.EXPERIMENT,
        price.EXPERIMENT,
    )
}
ALL = "all"


def named(name: str) -> tuple[Experiment, ...]:
    """The experiment of that name, or all of them."""
    if name == ALL:
        return tuple(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        names = ", ".join([*EXPERIMENTS, ALL])
        raise ParameterError("experiment", f"is {name!r}; give one of {names}")
    return (EXPERIMENTS[name],)
