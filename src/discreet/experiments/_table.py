"""All experiments, in the order in which a reader meets them. Adding one is a line here."""

from discreet.errors import ParameterError
from discreet.experiments import _decision_set as decision_set
from discreet.experiments import _dimension as dimension
from discreet.experiments import _lower_bounds as lower_bounds
from discreet.experiments import _price as price
from discreet.experiments import _shifts as shifts
from discreet.experiments import _variants as variants
from discreet.experiments._experiment import Experiment

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
