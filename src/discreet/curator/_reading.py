"""What a stored learner has shown, read while somebody else may be using it. Secret on the way.

The raw rows that are read are dropped here: what is returned is public.
"""

import time
from typing import Any, NamedTuple

from discreet.curator import _stored, bounds
from discreet.curator._changes import MALFORMED
from discreet.curator._releases import release_of
from discreet.curator.growing_ledger import GrowingLedger
from discreet.curator.opening import _added, _stored_sums
from discreet.curator.store import Place, _read_only
from discreet.errors import (
    CorruptFileError,
    ParameterError,
    RewoundStateError,
    StateFileError,
)
from discreet.mechanism import _codec
from discreet.mechanism.noise.sources import SystemNoise
from discreet.release import Release
from discreet.release.ledger import Ledger, fingerprint

_TRIES, _PAUSE = 20, 0.01  # a file that is written to meanwhile may look damaged, for a moment


class Shown(NamedTuple):
    """What a learner has shown.

    Attributes:
        release: the last release that is in its ledger, as far as the store was read.
        ledger: all releases up to that one.
        document: what is stored of the learner besides its data.
    """

    release: Release
    ledger: Ledger
    document: dict[str, Any]


def read(place: Place, *, known_head: str | None = None) -> Shown:
    """Look at a stored learner; nothing is locked, made or written.

    Args:
        place: where it is stored.
        known_head: a head of its ledger that the caller kept, which must be in it.

    Raises:
        StateFileError: What is stored is damaged, rewound, or of a newer version.
        StoreError: It cannot be read now.
    """
    for again in range(_TRIES - 1, -1, -1):
        try:
            return _shown_by(_read_only.look(place), known_head)
        except CorruptFileError:
            if not again:
                raise
            time.sleep(_PAUSE)
    raise AssertionError  # pragma: no cover  # the last try returns or raises


def _shown_by(seen: _read_only.Seen, known_head: str | None) -> Shown:
    """What a learner had shown when its store was read."""
    stored = _stored.read(seen.items)
    ledger = GrowingLedger.parse(seen.ledger)
    if ledger.root != stored.document.get("ledger") or not seen.ledger.startswith(seen.before):
        raise CorruptFileError(
            "path", "has a ledger that does not belong to it; restore the right one"
        )
    if known_head is not None:
        ledger.require_head(known_head)
    if stored.document.get("supplied") is True:
        raise ParameterError(
            "path", "holds a learner whose perturbations were supplied, and no store can hold them"
        )
    earlier = seen.before.count(b"\n") - 1
    try:
        release = _last(stored, known=len(ledger), earlier=earlier)
        bounds.checked_on_violation(stored.document["on_violation"])
    except StateFileError:
        raise
    except MALFORMED:
        raise CorruptFileError(
            "path", "holds settings that do not fit together; restore it from a backup"
        ) from None
    number = release.number
    if number:
        entry = ledger.entries[number - 1]
        if (entry.rows, entry.sha256) != (release.rows, fingerprint(release)):
            raise RewoundStateError(
                "path",
                f"holds another release {number} than its ledger: the state was continued twice. "
                "Restore the one that belongs to the ledger",
            )
    return Shown(release, ledger.view(number), stored.document)


def _last(stored: _stored.Stored, *, known: int, earlier: int) -> Release:
    """The last release that both the state and its ledger have.

    Args:
        stored: the state.
        known: how many releases the ledger has, after the state was read.
        earlier: how many it had before that: no fewer can be in the state.
    """
    mechanism = _codec.from_json(stored.document["mechanism"])
    sums = _stored_sums(stored, mechanism, SystemNoise())
    made = mechanism.schedule.count(stored.head.rows)
    if made < earlier:
        raise RewoundStateError(
            "path",
            f"holds an older state than its ledger: {earlier} releases were made and this state "
            f"knows {made}. Restore the newest state",
        )
    wanted = min(made, known)
    if sums.number > wanted:
        raise StateFileError(
            "path",
            f"has made {sums.number} releases and its ledger has {known}; they do not belong "
            "together, so restore the newest ledger",
        )
    steps = _added(stored, mechanism, sums)
    if sums.number < wanted and not any(sums.number == wanted for _ in steps):
        raise ValueError("there are fewer rows than the head counts")
    return release_of(mechanism, sums, None)
