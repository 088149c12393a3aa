"""What a service answers to `discreet.client.Client`, as plain data. Knows nothing of HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self


class _Read:
    """Data that is read from JSON. What a newer service says besides is left out."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Take what the class knows of a JSON object; KeyError or TypeError if it is no such thing.

        Args:
            document: the object, as the service sent it.

        Returns:
            The same as a typed object.
        """
        known = [one.name for one in fields(cls)]  # type: ignore[arg-type]  # all are dataclasses
        return cls(**{name: document[name] for name in known if name in document})


@dataclass(frozen=True, kw_only=True)
class RankedAction(_Read):
    """An action, and how probable it was that it is chosen."""

    id: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class ReleaseName(_Read):
    """Which release something was made from."""

    number: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class Ranking(_Read):
    """What to show a person.

    Attributes:
        event_id: under which to give the reward.
        action_id: the action to show.
        ranking: all actions on offer with their probabilities, in the service's order.
        release: what the decision was made from.
    """

    event_id: str
    action_id: str
    ranking: tuple[RankedAction, ...]
    release: ReleaseName

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """An answer, from the JSON that the service sent."""
        return cls(
            event_id=document["event_id"],
            action_id=document["action_id"],
            ranking=tuple(RankedAction.read(one) for one in document["ranking"]),
            release=ReleaseName.read(document["release"]),
        )


@dataclass(frozen=True, kw_only=True)
class Verdict(_Read):
    """What became of one reward.

    Attributes:
        event_id: whose it is.
        status: 204 if it was taken in, 400 if it is out of bounds, 404 if there is no such event.
        verdict: 'accepted', 'late', 'duplicate', 'invalid' or 'unknown'.
    """

    event_id: str
    status: int
    verdict: str


@dataclass(frozen=True, kw_only=True)
class BanditInfo(_Read):
    """A bandit and where it stands: public facts only.

    Attributes:
        name: of the bandit.
        epsilon: of its guarantee.
        delta: of its guarantee.
        horizon: the most events there will ever be, if that was said.
        contributions_per_user: how many events of one subject count.
        protects: what is protected: 'rows', or 'rewards' alone.
        reward: what rewards can be and how long one is waited for.
        features: the feature map, as JSON.
        policy: the policy, as JSON.
        theta_norm: the bound on the parameter.
        dim: how many features there are.
        created: when it was made, in seconds since 1970.
        state: 'running', 'rewound' or 'failed'.
        state_reason: why, in words.
        release: number, digest, rows and time of the last release.
        events: how many events there have been.
        closed: how many of them are past their deadline and learned.
        guarantee: what is promised, as a sentence.
    """

    name: str
    epsilon: float
    delta: float
    horizon: int | None = None
    contributions_per_user: int = 1
    protects: str = "rows"
    reward: dict[str, Any] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    policy: dict[str, Any] | None = None
    theta_norm: float | None = None
    dim: int = 0
    created: float = 0.0
    state: str = "running"
    state_reason: str | None = None
    release: dict[str, Any] = field(default_factory=dict)
    events: int = 0
    closed: int = 0
    guarantee: str = ""


@dataclass(frozen=True, kw_only=True)
class Erased(_Read):
    """What was erased of a person; None where the service's writer has not answered yet.

    Attributes:
        open: events that waited for their deadline, and are rows of zeros now.
        in_batch: rows that were learned but not released, and are rows of zeros now.
        released: rows that are in a release already, and cannot be taken back.
    """

    open: int | None = None
    in_batch: int | None = None
    released: int | None = None


@dataclass(frozen=True, kw_only=True)
class KeyInfo(_Read):
    """A key, without its secret.

    Attributes:
        id: with which it is revoked.
        name: for people.
        scopes: what it may do.
        bandit: the only bandit that it is for; None for all.
        created: when, in seconds since 1970.
    """

    id: str
    name: str
    scopes: tuple[str, ...]
    bandit: str | None = None
    created: float = 0.0

    def __post_init__(self) -> None:
        """A list from JSON becomes a tuple: keys can be compared and put in sets."""
        object.__setattr__(self, "scopes", tuple(self.scopes))


@dataclass(frozen=True, kw_only=True)
class NewKey(KeyInfo):
    """A key that was just made. Its ``key`` is shown this once, and is not in its repr."""

    key: str = field(default="", repr=False)
