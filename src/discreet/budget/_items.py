"""What shares a budget: one item for each mechanism, with what it states itself."""

from dataclasses import asdict, dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.mechanism import Mechanism, _codec
from discreet.mechanism._cost import HasTwoScales, total_trace
from discreet.privacy import Guarantee, Privacy
from discreet.problem import Problem
from discreet.release.ledger import Ledger

_LONGEST_NAME = 200


@runtime_checkable
class Learner(Protocol):
    """What a budget asks of a learner."""

    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def ledger(self) -> Ledger: ...


@runtime_checkable
class Values(Protocol):
    """What a budget asks of private values: one release of Gaussian noise."""

    @property
    def id(self) -> str: ...
    @property
    def cost(self) -> float: ...
    @property
    def trace(self) -> float: ...
    @property
    def guarantee(self) -> Guarantee: ...


@dataclass(frozen=True, kw_only=True)
class Item:
    """One mechanism that shares a budget, with what it states itself.

    Attributes:
        name: what it is called in this budget.
        id: of the learner or of the private values; None if it has none.
        epsilon: of its own guarantee.
        delta: of its own guarantee.
        mu: how far one person's rounds move everything that it shows, in standard deviations;
            None if its noise is not Gaussian, or not known to be.
        trace: what discrete noise costs beyond that; 0 for continuous noise.
        neighbours: the relation that all of this is for.
        contributions_per_user: in how many of its rounds one person may take part.
        protects: what all of this is for, 'rows' or 'rewards' alone.
    """

    name: str
    id: str | None
    epsilon: float
    delta: float
    mu: float | None
    trace: float
    neighbours: str
    contributions_per_user: int
    protects: str = "rows"

    def __post_init__(self) -> None:
        """Check every number: items come from files too."""
        if not isinstance(self.name, str) or not 0 < len(self.name) <= _LONGEST_NAME:
            raise ParameterError("name", f"must be a text of 1 to {_LONGEST_NAME} characters")
        if self.id is not None and not (isinstance(self.id, str) and self.id):
            raise ParameterError("id", "must be a text; leave it out if there is none")
        if checks.at_least("delta", self.delta, 0.0) >= 1.0:
            raise ParameterError("delta", f"is {self.delta:g}; give a number below 1")
        target = Privacy(
            epsilon=self.epsilon,
            delta=0.5,  # none is needed: it may be 0 here
            neighbours=self.neighbours,
            contributions_per_user=self.contributions_per_user,
            protects=self.protects,
        )
        for name, value in asdict(target).items():
            object.__setattr__(self, name, float(self.delta) if name == "delta" else value)
        if self.mu is not None:
            object.__setattr__(self, "mu", checks.magnitude("mu", self.mu))
        object.__setattr__(self, "trace", checks.at_least("trace", self.trace, 0.0))


class Stated(NamedTuple):
    """What a mechanism states.

    Attributes:
        id: of the learner or of the private values; None if it has none.
        guarantee: its own.
        mu: its cost, if its noise is Gaussian.
        trace: what discrete noise costs beyond that.
        kind: a name for it, if it is given none.
    """

    id: str | None
    guarantee: Guarantee
    mu: float | None
    trace: float
    kind: str


def stated(what: object) -> Stated:
    """What something states that is to share a budget."""
    if isinstance(what, Guarantee):
        return Stated(None, what, None, 0.0, "guarantee")
    if isinstance(what, Mechanism):
        return Stated(None, what.guarantee, what.cost, what.trace, f"mechanism {what.variant}")
    if isinstance(what, Ledger):
        return _of_ledger(what)
    if isinstance(what, Learner) and isinstance(what.mechanism, Mechanism):
        used = what.mechanism
        identity = what.ledger.learner
        return Stated(identity, used.guarantee, used.cost, used.trace, f"learner {identity[:8]}")
    if isinstance(what, Values) and isinstance(what.guarantee, Guarantee):
        return Stated(what.id, what.guarantee, what.cost, what.trace, f"values {what.id[:8]}")
    raise ParameterError(
        "what",
        f"is of type {type(what).__name__}; give a learner, its ledger, private values, a "
        "mechanism or a guarantee",
    )


def _of_ledger(ledger: Ledger) -> Stated:
    """What a privacy card states. A card can be forged: read ledgers that you trust."""
    card, trace = ledger.card, 0.0
    fields = Guarantee.__dataclass_fields__
    try:
        guarantee = Guarantee(**{name: card[name] for name in fields})
        mu = card["mu"]
        if mu is not None:
            noise: object = _codec.noise_from_json(card["noise"]["parameters"])
            strategy = _codec.strategy_from_json(card["strategy"])
            if strategy is None or not isinstance(noise, HasTwoScales):
                raise ValueError("no noise")
            trace = total_trace(
                noise,
                Problem(**card["bounds"]),
                strategy=strategy,
                releases=checks.count("most_releases", card["most_releases"]),
                protects=guarantee.protects,
            )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ParameterError(
            "what", "has a privacy card that says too little; give the learner itself"
        ) from None
    return Stated(ledger.learner, guarantee, mu, trace, f"learner {ledger.learner[:8]}")
