"""`Client`: every call of the service as a method, with typed answers."""

import json
import ssl
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from discreet.client._answers import BanditInfo, Erased, KeyInfo, NewKey, Ranking, Verdict
from discreet.client._transport import Request, Retries, Transport
from discreet.errors import ClientError, ParameterError

if TYPE_CHECKING:
    from discreet.release import Release
    from discreet.release.ledger import Ledger

_T = TypeVar("_T")
_BATCH = 1_000  # rewards in one request
_REFUSED = 400  # from this status on a verdict is a refusal


class Client:
    """A service, seen from a program. Several threads may use one client.

    Every call may raise a `ClientError`, with the ``status`` and ``code`` of the service's answer.
    Calls are repeated, with growing waits, if the connection fails, or if the service is busy or
    away for a moment. That is safe: a rank has its event id from its first attempt on, and one
    reward of an event counts. (If the bandit adds rewards up, ``"aggregation": "sum"``, a reward
    whose answer was lost may count twice; with ``Retries(attempts=1)`` nothing is repeated.) What
    must not be done twice, making a bandit or a key, is repeated only if it cannot have happened.

        with Client("http://localhost:8080", key, bandit="news") as client:
            shown = client.rank(["a1", "a2"], context={"device": "phone"})
            client.reward(shown.event_id, 1.0)

    Args:
        url: of the service, such as ``http://localhost:8080``.
        key: an API key. It is never part of an error or a repr.
        bandit: the name of the bandit that calls are about, unless they name another.
        timeout: the most seconds that connecting, sending, or waiting for more of an answer takes.
            The service itself gives up after ten: with less, its own words are not heard.
        retries: how often a call is tried.
        context: certificates to trust, for https; the system's if left out.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        bandit: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Connect at the first call."""
        self._default = bandit
        self._transport = Transport(
            url, key, timeout=timeout, retries=retries or Retries(), context=context
        )

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r}, bandit={self._default!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections. The client can still be used; it connects again."""
        self._transport.close()

    # Deciding and learning

    def rank(
        self,
        actions: Sequence[str | Mapping[str, Any]],
        *,
        context: Mapping[str, Any] | None = None,
        exclude: Iterable[str] = (),
        event_id: str | None = None,
        subject: str | None = None,
        defer: bool = False,
        bandit: str | None = None,
    ) -> Ranking:
        """Choose an action for a person.

        Args:
            actions: ids, or objects with an ``id`` and ``features``.
            context: what is known about the person and the moment.
            exclude: ids of actions that may not be chosen.
            event_id: under which the reward will come; drawn at random if left out.
            subject: who the person is, if they may come again.
            defer: the action may not be shown; the event counts once `activate` is called.
            bandit: if not the client's.

        Returns:
            The action to show, and the event id for its reward. Use that one: it is not
            ``event_id`` if the service decided without its database.
        """
        optional = {
            "context": None if context is None else dict(context),
            "exclude": list(exclude) or None,
            "subject": subject,
            "defer": defer or None,
        }
        body = {
            "event_id": uuid.uuid4().hex if event_id is None else event_id,
            "actions": [{"id": one} if isinstance(one, str) else dict(one) for one in actions],
            **{name: value for name, value in optional.items() if value is not None},
        }
        return self._ask("rank", "POST", self._of(bandit, "rank"), Ranking.read, body=body)

    def reward(self, event_id: str, value: float, *, bandit: str | None = None) -> Verdict:
        """Give the reward of one event.

        Args:
            event_id: whose reward it is.
            value: the reward.
            bandit: if not the client's.

        Returns:
            'accepted', or 'late' or 'duplicate' if it does not count.

        Raises:
            ClientError: it is out of bounds (400), or there is no such event (404), besides what
                any call may raise.
        """
        verdict = self.rewards([(event_id, value)], bandit=bandit)[0]
        if verdict.status >= _REFUSED:
            raise ClientError(
                "reward",
                f"was refused: {verdict.verdict}",
                status=verdict.status,
                code="EventNotFound" if verdict.verdict == "unknown" else "BadRequest",
            )
        return verdict

    def rewards(
        self,
        rewards: Mapping[str, float] | Iterable[tuple[str, float]],
        *,
        bandit: str | None = None,
    ) -> list[Verdict]:
        """Give many rewards, a thousand in a request. One that is refused does not stop the others.

        Args:
            rewards: values by event id, or pairs of the two.
            bandit: if not the client's.

        Returns:
            A verdict for each, in order; 'invalid' also for what cannot be an event's id.
        """
        pairs = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
        path = self._of(bandit, "rewards")
        verdicts: list[Verdict] = []
        for start in range(0, len(pairs), _BATCH):
            some = pairs[start : start + _BATCH]
            body = [{"event_id": event_id, "value": value} for event_id, value in some]
            found = self._ask("rewards", "POST", path, _each(Verdict.read), body=body)
            verdicts += _in_order(found, [event_id for event_id, _ in some])
        return verdicts

    def activate(self, event_id: str, *, bandit: str | None = None) -> None:
        """Say that what was ranked with ``defer`` was shown.

        Args:
            event_id: of the rank.
            bandit: if not the client's.
        """
        path = self._of(bandit, "events", event_id, "activate")
        self._call(Request(name="activate", method="POST", path=path))

    # What can be seen

    def bandits(self) -> list[BanditInfo]:
        """All bandits that the key may see."""
        return self._ask(
            "bandits", "GET", _path("v1", "bandits"), _below("bandits", _each(BanditInfo.read))
        )

    def bandit(self, name: str | None = None) -> BanditInfo:
        """A bandit's settings and public counts; the client's own if no name is given."""
        return self._ask("bandit", "GET", self._of(name), BanditInfo.read)

    def release(self, number: int | None = None, *, bandit: str | None = None) -> "Release":
        """A release, checked against its digest; `ledger` and `Ledger.holds` say if it was shown.

        Args:
            number: of the release; the latest if left out.
            bandit: if not the client's.

        Returns:
            The release, from which a `discreet.Ranker` decides.
        """
        from discreet.release import Release  # noqa: PLC0415  # slow, and few need it

        path = self._of(bandit, "releases", "latest" if number is None else str(number))
        found = Release.from_json(self._call(Request(name="release", method="GET", path=path)))
        if number is not None and found.number != number:
            raise _wrong_answer("release")
        return found

    def card(self, *, bandit: str | None = None) -> dict[str, Any]:
        """The privacy card: what is promised, and how it is kept."""
        return self._ask("card", "GET", self._of(bandit, "card"), dict)

    def ledger(self, *, bandit: str | None = None) -> "Ledger":
        """All releases ever made, with every line of their chain of digests checked."""
        from discreet.release.ledger import Ledger  # noqa: PLC0415  # slow, and few need it

        path = self._of(bandit, "ledger") + "?format=lines"
        return Ledger.parse(self._call(Request(name="ledger", method="GET", path=path)))

    # For administrators

    def create_bandit(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float,
        horizon: int | None,
        **settings: Any,  # noqa: ANN401  # JSON of several kinds
    ) -> BanditInfo:
        """Make a bandit.

        Args:
            name: of the bandit.
            epsilon: of joint differential privacy, or of that of rewards (``protects``).
            delta: of the same.
            horizon: the most events there will ever be; None if that is not known.
            settings: ``contributions_per_user``, ``protects``, ``reward``, ``features`` (a
                `FeatureMap`'s JSON), ``policy``, ``theta_norm``, as in the service's documentation.

        Returns:
            The bandit.
        """
        promise = {"name": name, "epsilon": epsilon, "delta": delta, "horizon": horizon}
        given = {key: value for key, value in settings.items() if value is not None}
        return self._ask(
            "create_bandit",
            "POST",
            _path("v1", "bandits"),
            BanditInfo.read,
            body={**promise, **given},
            repeatable=False,
        )

    def erase(self, subject: str, *, bandit: str | None = None) -> Erased:
        """Forget a person, as far as releases have not been made of their rows.

        Args:
            subject: as given to `rank`.
            bandit: if not the client's.

        Returns:
            How many of their rows were where.
        """
        path = self._of(bandit, "subjects", subject)
        return self._ask("erase", "DELETE", path, Erased.read)

    def keys(self) -> list[KeyInfo]:
        """All keys, without their secrets."""
        return self._ask("keys", "GET", _path("v1", "keys"), _below("keys", _each(KeyInfo.read)))

    def create_key(self, name: str, scopes: Iterable[str], *, bandit: str | None = None) -> NewKey:
        """Make a key.

        Args:
            name: for people.
            scopes: what it may do: rank, reward, read, admin.
            bandit: the only bandit that it is for; all if left out.

        Returns:
            The key. Its text is in ``key``, and is shown this once.
        """
        body: dict[str, Any] = {"name": name, "scopes": list(scopes)}
        if bandit is not None:
            body["bandit"] = bandit
        path = _path("v1", "keys")
        return self._ask("create_key", "POST", path, NewKey.read, body=body, repeatable=False)

    def revoke_key(self, identity: str) -> None:
        """Make a key invalid.

        Args:
            identity: the key's ``id``.
        """
        self._call(Request(name="revoke_key", method="DELETE", path=_path("v1", "keys", identity)))

    def _of(self, bandit: str | None, *parts: str) -> str:
        """The path of something of a bandit."""
        name = self._default if bandit is None else bandit
        if name is None:
            raise ParameterError("bandit", "is not said; name it here or when making the client")
        return _path("v1", "bandits", name, *parts)

    def _call(self, request: Request) -> bytes:
        return self._transport.call(request).content

    def _ask(
        self,
        name: str,
        method: str,
        path: str,
        read: Callable[[Any], _T],
        *,
        body: Any = None,  # noqa: ANN401  # any JSON
        repeatable: bool = True,
    ) -> _T:
        """What a call answers, read from JSON."""
        request = Request(name=name, method=method, path=path, body=body, repeatable=repeatable)
        content = self._call(request)
        try:
            return read(json.loads(content))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise _wrong_answer(name) from None


def _wrong_answer(name: str) -> ClientError:
    return ClientError(
        name, "was answered with something else; is the address right?", code="WrongAnswer"
    )


def _in_order(verdicts: list[Verdict], ids: list[str]) -> list[Verdict]:
    """A verdict for each event. The service does not repeat what cannot be an event's id."""
    if len(verdicts) != len(ids):
        raise _wrong_answer("rewards")
    found = []
    for one, event_id in zip(verdicts, ids, strict=True):
        if one.event_id != event_id and (one.event_id or one.verdict != "invalid"):
            raise _wrong_answer("rewards")
        found.append(replace(one, event_id=event_id))
    return found


def _path(*parts: str) -> str:
    """A path of parts that may hold any text."""
    if not all(parts):
        raise ParameterError("path", "has an empty name or id in it; give one")
    try:
        return "".join("/" + quote(one, safe="") for one in parts)
    except UnicodeEncodeError:
        raise ParameterError("path", "has half a character in a name or id; give text") from None


def _each(read: Callable[[Any], _T]) -> Callable[[Any], list[_T]]:
    """A reader of lists, made of a reader of one item."""
    return lambda found: [read(one) for one in found]


def _below(key: str, read: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """A reader of what an object holds under one key."""
    return lambda found: read(found[key])
