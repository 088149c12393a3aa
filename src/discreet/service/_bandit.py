"""A bandit as a ranker knows it, and how it decides: from public data and the request alone."""

import contextlib
from bisect import bisect_right
from itertools import accumulate
from random import SystemRandom
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.release import Release
from discreet.release._ranker import Ranker
from discreet.release._release import fingerprint
from discreet.release.policies import Policy
from discreet.service._bodies import (
    BanditSpec,
    RankAnswer,
    Ranked,
    RankRequest,
    ReleaseName,
    ServiceError,
)
from discreet.service._spec import features_of, policy_from

_coin = SystemRandom().random


def make_ready(release: Release, policy: Policy) -> None:
    """Work out what decisions from a release need, once, and compile what does that.

    It may take many seconds where nothing was compiled before: not for a request to wait for, nor
    for the event loop.

    Args:
        release: which will be decided from.
        policy: with which.
    """
    dim = release.mechanism.setting.problem.dim
    with contextlib.suppress(DiscreetError):  # which those who ask will be told
        Ranker(release, policy=policy).rank(np.zeros((2, dim)))


class Scored(NamedTuple):
    """A decision set, and what a release makes of it.

    Attributes:
        rows: the features of all actions, shape (K, d).
        order: the places of the actions on offer, the most probable first.
        chances: how probable each of these is.
        number: of the release.
        digest: of the release.
    """

    rows: NDArray[np.float64]
    order: list[int]
    chances: list[float]
    number: int
    digest: str

    def drawn(self) -> int:
        """The place of an action, drawn with these probabilities."""
        reached = list(accumulate(self.chances))
        place = bisect_right(reached, _coin() * reached[-1])
        possible = sum(chance > 0.0 for chance in self.chances)
        return self.order[min(place, possible - 1)]

    def answer(self, request: RankRequest, event_id: str, choice: int) -> RankAnswer:
        """The answer to the rank request."""
        ids = [action.id for action in request.actions]
        return RankAnswer(
            event_id=event_id,
            action_id=ids[choice],
            ranking=[
                Ranked(ids[place], chance)
                for place, chance in zip(self.order, self.chances, strict=True)
            ],
            release=ReleaseName(self.number, self.digest),
        )


class Bandit:
    """A bandit, as a ranker knows it: public data only."""

    def __init__(
        self, number: int, spec: BanditSpec, created: float, room: int, release: Release
    ) -> None:
        """Use `Core.bandit`. It takes a while: call it outside of the event loop."""
        self.number = number
        self.created = created
        self.room = room
        self.features = features_of(spec)
        self.state = "running"
        self.state_reason = ""
        self.rewound = False  # found out by this process, which does not forget it
        self.ranker = Ranker(release, policy=policy_from(spec.policy or {}))
        self.made = created  # when the release was made
        self.digest: str = fingerprint(release)
        self.events = self.closed = 0
        self.spec = spec
        with contextlib.suppress(DiscreetError):  # of a map that cannot do without more
            self.features(None, [{"id": "a", "features": {}}])
        make_ready(release, self.ranker.policy)

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    def as_json(self) -> dict[str, Any]:
        """What everybody with a read key may know."""
        spec, release = self.spec, self.ranker.release
        return {
            **msgspec.to_builtins(spec),
            "dim": self.features.dim,
            "created": self.created,
            "state": self.state,
            "state_reason": self.state_reason,
            "release": {
                "number": release.number,
                "digest": self.digest,
                "rows": release.rows,
                "made": self.made,
            },
            "events": self.events,
            "closed": self.closed,
            "open": self.events - self.closed,
            "guarantee": str(release.guarantee),
        }

    def require_running(self) -> None:
        """Refuse to decide from what may be a restored backup."""
        if self.state == "rewound":
            raise ServiceError(
                503,
                "Rewound",
                "This bandit may have been restored from a backup; why is in its state_reason, "
                "for keys that may read.",
            )

    def scored(self, request: RankRequest, ranker: Ranker | None = None) -> Scored:
        """What a release makes of a decision set.

        Args:
            request: the person, and what there is to choose from.
            ranker: that of an earlier release; the current one if left out.

        Raises:
            ServiceError: the request cannot be answered; the message holds nothing of it.
        """
        ids = [action.id for action in request.actions]
        if len(set(ids)) < len(ids):
            raise ServiceError(400, "BadRequest", "actions: two have the same id.")
        excluded = frozenset(request.exclude or ())
        among = [place for place, one in enumerate(ids) if one not in excluded]
        if not among:
            raise ServiceError(400, "BadRequest", "exclude: leaves no action to choose.")
        actions = [{"id": one.id, "features": one.features or {}} for one in request.actions]
        found = self.ranker if ranker is None else ranker
        digest = self.digest if ranker is None else fingerprint(found.release)
        number = found.release.number
        try:
            rows = self.features(request.context, actions)
            ranking = found.rank(rows, among=among if excluded else None)
        except DiscreetError as error:
            raise ServiceError(400, "BadRequest", str(error)) from None
        except RecursionError:
            raise ServiceError(400, "BadRequest", "context: is nested too deeply.") from None
        order = [one.index for one in ranking]
        return Scored(rows, order, [one.probability or 0.0 for one in ranking], number, digest)
