"""What requests and answers look like. Types here are the contract: OpenAPI is made of them."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z",
        description="A bandit's name: letters, digits, `_`, `.` and `-`, at most 64.",
    ),
]
EventId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+\Z",
        description="An event's id: printable ASCII without spaces, at most 200 characters.",
    ),
]
ActionId = Annotated[str, Meta(min_length=1, max_length=200)]
Subject = Annotated[str, Meta(min_length=1, max_length=500)]
Most = Annotated[int, Meta(ge=1, le=10**12)]


class ServiceError(Exception):
    """A refusal that becomes ``{"error": {"code", "message"}}``. It never carries raw data."""

    def __init__(self, status: int, code: str, message: str) -> None:
        """Give the HTTP status, a code for programs, and a sentence for people."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class ErrorBody(Struct, frozen=True):
    """What went wrong."""

    code: str
    message: str


class ErrorAnswer(Struct, frozen=True):
    """Every answer that is a refusal."""

    error: ErrorBody


class RewardRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What rewards can be, and how long one is waited for.

    Attributes:
        low: the least reward.
        high: the largest.
        wait_seconds: how long after its rank an event is closed, whether a reward came or not.
        default: the reward of an event for which none came.
        aggregation: which of several rewards counts: 'earliest', or their 'sum', kept in bounds.
    """

    low: float = 0.0
    high: float = 1.0
    wait_seconds: Annotated[float, Meta(ge=0.0, le=86400.0 * 30)] = 600.0
    default: float = 0.0
    aggregation: Annotated[str, Meta(pattern=r"^(earliest|sum)\Z")] = "earliest"


class BanditSpec(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A bandit to be made. Epsilon, delta and the horizon have no defaults: they are a promise.

    Attributes:
        name: of the bandit.
        epsilon: of joint differential privacy, or of the differential privacy of rewards.
        delta: of the same.
        horizon: the most events there will ever be; null if that is not known.
        contributions_per_user: how many events of one subject may count.
        protects: 'rows', what people could choose from and their rewards; or 'rewards' alone, where
            contexts, actions, activations and who came how often are public.
        reward: what rewards can be.
        features: a feature map as JSON; the default map of 32 coordinates if left out.
        policy: a policy as JSON, such as {"rule": "posterior"}; the learner's own if left out.
        theta_norm: the bound on the parameter; from the rewards' range if left out.
        memory: how many rows are remembered, for worlds that change; null to forget nothing.
    """

    name: Name
    epsilon: float
    delta: float
    horizon: Most | None
    contributions_per_user: Most = 1
    protects: Annotated[str, Meta(pattern=r"^(rows|rewards)\Z")] = "rows"
    reward: RewardRule = RewardRule()
    features: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    theta_norm: float | None = None
    memory: Most | None = None


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the things to choose from."""

    id: ActionId
    features: dict[str, Any] | None = None


class RankRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A person, and what there is to choose from.

    Attributes:
        actions: what there is to choose from.
        context: what is known about the person or the moment.
        exclude: ids of actions that may not be chosen.
        event_id: under which the reward will come; made up if left out. A repeated request with
            the same id is answered as the first one was, and is one event.
        subject: who the person is, if they may come again. Only a keyed hash is stored.
        defer: whether the action may not be shown at all; the event counts once it is activated.
    """

    actions: Annotated[list[Action], Meta(min_length=1, max_length=1000)]
    context: dict[str, Any] | None = None
    exclude: Annotated[list[ActionId], Meta(max_length=1000)] | None = None
    event_id: EventId | None = None
    subject: Subject | None = None
    defer: bool | None = False

    def __post_init__(self) -> None:
        if self.defer is None:  # as if it were left out, also for the hash of the request
            msgspec.structs.force_setattr(self, "defer", False)  # noqa: FBT003  # a value


class Ranked(Struct, frozen=True):
    """An action and how probable it was."""

    id: str
    probability: float


class ReleaseName(Struct, frozen=True):
    """Which release a decision was made from."""

    number: int
    digest: str


class RankAnswer(Struct, frozen=True, kw_only=True):
    """What to show, and the id under which its reward is given."""

    event_id: str
    action_id: str
    ranking: list[Ranked]
    release: ReleaseName


class Reward(Struct, frozen=True, forbid_unknown_fields=True):
    """The reward of an event."""

    event_id: EventId
    value: float


Rewards = Annotated[list[Reward], Meta(max_length=10_000)]


class Verdict(Struct, frozen=True):
    """What became of one reward.

    Attributes:
        event_id: whose reward it is; empty where what was given cannot be an event's id.
        status: 204 if it was taken in or came late, 400 if it is out of bounds or no reward, 404 if
            there is no such event.
        verdict: 'accepted', 'late', 'duplicate', 'invalid' or 'unknown'.
    """

    event_id: str
    status: int
    verdict: str


class Erased(Struct, frozen=True, kw_only=True):
    """What was erased of a person; null where the writer has not answered yet.

    Attributes:
        open: events that waited for their deadline, and are rows of zeros now.
        in_batch: rows that were learned but not released, and are rows of zeros now.
        released: rows that are in a release already, and cannot be taken back.
    """

    open: int | None
    in_batch: int | None
    released: int | None


class Health(Struct, frozen=True, kw_only=True):
    """Whether a process can decide, and what is stale.

    Attributes:
        ready: whether it can decide; the status is 503 if not.
        database: 'ok', or what is wrong with it.
        writer: 'ok', or what is wrong with it; rankers go on without one.
        bandits: those that do not run, by name: 'rewound' or 'failed'.
    """

    ready: bool
    database: str
    writer: str
    bandits: dict[str, str]


class KeyRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A key to be made.

    Attributes:
        name: for people.
        scopes: what it may do: rank, reward, read, admin.
        bandit: the only bandit it is for; all if null.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    scopes: Annotated[
        list[Annotated[str, Meta(pattern=r"^(rank|reward|read|admin)\Z")]],
        Meta(min_length=1, max_length=4),
    ]
    bandit: Name | None = None


class _Item(Struct):
    """An item of a list of rewards, whatever is wrong with it."""

    event_id: Any = None


_REWARDS: msgspec.json.Decoder[list[Reward]] = msgspec.json.Decoder(Rewards)
_ITEMS: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(
    Annotated[list[msgspec.Raw], Meta(max_length=10_000)]
)
_REWARD = msgspec.json.Decoder(Reward)
_ITEM = msgspec.json.Decoder(_Item)


def read_rewards(content: bytes) -> Sequence[Reward | Verdict]:
    """A list of rewards, with a verdict already in the place of each object that is none.

    Args:
        content: JSON.

    Raises:
        msgspec.DecodeError: it is no list of objects, or too long a one.
    """
    try:
        return _REWARDS.decode(content)
    except msgspec.ValidationError:
        return [_read_reward(one) for one in _ITEMS.decode(content)]


def _read_reward(item: msgspec.Raw) -> Reward | Verdict:
    given = _ITEM.decode(item).event_id
    try:
        return _REWARD.decode(item)
    except msgspec.ValidationError:
        pass
    try:
        event_id = msgspec.convert(given, EventId)
    except msgspec.ValidationError:
        event_id = ""
    return Verdict(event_id, 400, "invalid")
