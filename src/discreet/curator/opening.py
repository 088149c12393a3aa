"""Creates a curator: a new one with its first noise, or one from a store. Secret."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.curator import _stored, bounds
from discreet.curator import store as stores
from discreet.curator._changes import MALFORMED, Row
from discreet.curator._progress import Restored
from discreet.curator._releases import release_of
from discreet.curator._subjects import KEY, UNCAPPED, Book, count_of
from discreet.curator.curator import DEFAULT_MAX_PENDING, Curator
from discreet.curator.growing_ledger import GrowingLedger
from discreet.curator.sums import PrefixSums, sums_of
from discreet.errors import CorruptFileError, MissingFileError, ParameterError
from discreet.mechanism import Mechanism, _codec
from discreet.mechanism._perturbations import Perturbations
from discreet.mechanism.noise.sources import NoiseSource, SystemNoise
from discreet.release import Release
from discreet.release.ledger import Entry, fingerprint

_F64 = NDArray[np.float64]

_FLOATING = "; noise is drawn and added in floating point, whose rounding this does not cover"


def begin(
    mechanism: Mechanism,
    *,
    source: NoiseSource | None = None,
    supplied: Perturbations | None = None,
    on_violation: str = "error",
    max_pending: int = DEFAULT_MAX_PENDING,
) -> Curator:
    """A new learner's curator, with its first noise drawn.

    Args:
        mechanism: the noise, its bounds and its setting.
        source: where noise comes from; the operating system, unless a test names another.
        supplied: perturbations of the caller's own, which are added to every release.
        on_violation: what to do with rows outside the bounds, 'error' or 'clip'.
        max_pending: how many decisions may wait for their reward.
    """
    source = SystemNoise() if source is None else source
    mechanism = _honest(mechanism, source)
    return Curator(
        mechanism,
        sums_of(mechanism).begin(mechanism, source),
        Book(_cap(mechanism)),
        supplied=supplied,
        on_violation=on_violation,
        max_pending=max_pending,
    )


def _cap(mechanism: Mechanism) -> int:
    """How many rows of one person count: as many as there is noise for."""
    promised = mechanism.guarantee.private or mechanism.noise is not None
    return mechanism.guarantee.contributions_per_user if promised else UNCAPPED


def open(  # noqa: A001  # as in `store`
    place: stores.Place,
    *,
    source: NoiseSource | None = None,
    supplied: Perturbations | None = None,
    known_head: str | None = None,
) -> tuple[Curator, dict[str, Any]]:
    """Continue from a store, where the last call returned.

    A state older than its ledger is refused: something was shown that it does not know of.

    Args:
        place: where the learner is stored.
        source: as for `begin`.
        supplied: the learner's perturbations, which no store can hold.
        known_head: a head of this learner's ledger that the caller kept, which must be in it.

    Returns:
        The curator, and what is stored of the learner besides its data.
    """
    found = stores.open(place)
    try:
        stored = _stored.read(found.items)
        ledger = GrowingLedger.parse(found.ledger)
        if ledger.root != stored.document.get("ledger"):
            raise CorruptFileError(
                "path",
                "has a ledger that does not belong to it; restore the right one, or start a new "
                "learner",
            )
        if known_head is not None:
            ledger.require_head(known_head)
        curator, late = _restored(stored, found, ledger, source, supplied)
        missing = _reconcile(curator, ledger, late, supplied=supplied is not None)
        if found.missing is not None:
            raise MissingFileError(
                "path",
                f"{found.missing} is missing, and the learner was not closed: its last changes may "
                "be in that file, so restore it. If another program has opened the database since, "
                "and folded it in, make an empty file of that name",
            )
        if missing:
            found.store.append(missing[0].number, [entry.line() for entry in missing])
    except BaseException:
        found.store.close()
        raise
    curator.policy = stored.document.get("policy")
    return curator, stored.document


def _restored(
    stored: _stored.Stored,
    found: stores.Opened,
    ledger: GrowingLedger,
    source: NoiseSource | None,
    supplied: Perturbations | None,
) -> tuple[Curator, list[Release]]:
    """The curator that the items describe; CorruptFileError if they do not fit together.

    Returns:
        The curator, and its releases from the ledger's last one on, as far as they can be had.
    """
    source = SystemNoise() if source is None else source
    document = stored.document
    if document.get("supplied") is True and supplied is None:
        raise ParameterError("perturbations", "must be given again: no store can hold them")
    if document.get("supplied") is not True and supplied is not None:
        raise ParameterError("perturbations", "were not part of this learner; leave them out")
    try:
        written = _codec.from_json(document["mechanism"])
        mechanism = _honest(written, source)
        sums = _stored_sums(stored, mechanism, source)
        late = _replayed(stored, mechanism, sums, supplied, len(ledger))
        waiting, owners = _waiting(stored, mechanism, document["max_pending"])
        sessions = _sessions(stored)
        restored = Restored(ledger, stored.head, waiting, sessions, found.store, found.sequence)
        book = _book(stored, mechanism, owners)
        options = {name: document[name] for name in ("on_violation", "max_pending")}
        checks.count("max_pending", options["max_pending"])
        bounds.checked_on_violation(options["on_violation"])
    except MALFORMED:
        raise CorruptFileError(
            "path", "holds settings that do not fit together; restore it from a backup"
        ) from None
    if mechanism.guarantee.epsilon != written.guarantee.epsilon:
        raise ParameterError(
            "noise_source", "can be repeated, and this learner promises privacy; leave it out"
        )
    return Curator(mechanism, sums, book, supplied=supplied, restored=restored, **options), late


def _stored_sums(stored: _stored.Stored, mechanism: Mechanism, source: NoiseSource) -> PrefixSums:
    """The sums as they were stored, before the rows that came after."""
    counters = {name: _whole(stored.sums[name]) for name in ("rows", "released", "number")}
    sums = sums_of(mechanism).resume(mechanism, source, arrays=stored.sums["arrays"], **counters)
    if (sums.rows, sums.position.released) != (stored.head.summed, stored.head.released):
        raise ValueError("the sums hold other rows")
    open_rows = {}
    for number, contents in stored.open_rows:
        row = _row(stored, number, contents, mechanism, sums).open_row
        if row is None:
            raise ValueError("an open row of nobody")
        open_rows[number] = row
    sums.resume_open_rows(open_rows)
    return sums


def _row(
    stored: _stored.Stored,
    number: int,
    contents: bytes,
    mechanism: Mechanism,
    sums: PrefixSums,
) -> Row:
    """A stored row within the bounds; ValueError if it is none."""
    problem = mechanism.setting.problem
    row = _stored.row_of(number, contents, problem.dim, sums.no_draws)
    if not 0 <= row.number < stored.head.rounds:
        raise ValueError("a row of no decision")
    row.action = bounds.bounded_actions(problem, row.action[None], "error")[0]
    row.reward = bounds.stored_reward(problem, row.reward)
    return row


def _replayed(
    stored: _stored.Stored,
    mechanism: Mechanism,
    sums: PrefixSums,
    supplied: Perturbations | None,
    known: int,
) -> list[Release]:
    """Add the rows that came after; all releases on the way from number ``known`` on."""
    found = [release_of(mechanism, sums, supplied)] if sums.number >= known else []
    made = sums.number
    for _ in _added(stored, mechanism, sums):
        if sums.number > made and sums.number >= known:
            found.append(release_of(mechanism, sums, supplied))
        made = sums.number
    return found


def _added(stored: _stored.Stored, mechanism: Mechanism, sums: PrefixSums) -> Iterator[None]:
    """Add the rows that came after the stored sums, one at each step."""
    for number, contents in stored.rows:
        row = _row(stored, number, contents, mechanism, sums)
        sums.add(number, row.action, row.reward, row.noise, row.open_row)
        yield


def _waiting(
    stored: _stored.Stored, mechanism: Mechanism, most: int
) -> tuple[dict[int, _F64], dict[int, bytes]]:
    """The decisions that wait and whom they are for, if they and the counts fit together."""
    head, waiting = stored.head, stored.waiting
    for count in vars(head).values():
        _whole(count)
    closed = head.rounds - len(waiting)
    if head.rounds > mechanism.setting.horizon or head.rows + head.given_up > closed:
        raise ValueError("the counters do not fit together")
    if len(waiting) > most or any(not 0 <= number < head.rounds for number in waiting):
        raise ValueError("more decisions wait than may, or some that were never made")
    if not waiting:
        return {}, {}
    problem = mechanism.setting.problem
    found = [_stored.decision_of(part, problem.dim) for part in waiting.values()]
    bounded = bounds.bounded_actions(problem, np.array([action for action, _ in found]), "error")
    actions = {number: action.copy() for number, action in zip(waiting, bounded, strict=True)}
    owned = zip(waiting, found, strict=True)
    return actions, {number: owner for number, (_, owner) in owned if owner is not None}


def _book(stored: _stored.Stored, mechanism: Mechanism, owners: dict[int, bytes]) -> Book:
    """What is known of people; ValueError if it does not fit together."""
    cap = _cap(mechanism)
    key = bytes.fromhex(stored.document["people"])
    counts = {}
    for wanted, (arrival, contents) in enumerate(stored.people):
        if arrival != wanted:
            raise ValueError("a person is missing")
        count = count_of(arrival, contents, cap)
        counts[count.digest] = count.record
    if len(key) != KEY or len(counts) != len(stored.people):
        raise ValueError("a person is there twice")
    return Book(cap, key, counts, owners, stored.head.over)


def _sessions(stored: _stored.Stored) -> list[tuple[int, str]]:
    firsts, rounds = [first for first, _ in stored.sessions], stored.head.rounds
    if firsts[:1] != ([0] if rounds else []) or any(first >= rounds for first in firsts):
        raise ValueError("sessions that do not fit")
    return stored.sessions


def _reconcile(
    curator: Curator, ledger: GrowingLedger, late: Sequence[Release], *, supplied: bool
) -> list[Entry]:
    """Compare the state with its ledger, and enter the releases that a crash may have cost it.

    Args:
        curator: the state.
        ledger: its ledger, which grows by what is missing.
        late: releases from the ledger's last one on, in order.
        supplied: whether perturbations were supplied, which need not come out the same again.

    Returns:
        What was missing.
    """
    known, missing = len(ledger), []
    for release in (*late, curator.shown):
        digest = fingerprint(release) if release.number else None
        if supplied and 0 < release.number == known:
            digest = ledger.entries[known - 1].sha256
        entry = ledger.reconcile(release.number, release.rows, digest)
        missing += [] if entry is None else [entry]
    return missing


def _honest(mechanism: Mechanism, source: NoiseSource) -> Mechanism:
    """Withdraw the promise if the noise could be repeated; say if rounding is not covered."""
    guarantee = mechanism.guarantee
    if mechanism.noise is None or not guarantee.private:
        return mechanism
    if not source.secret:
        reason = "its noise comes from a seed and can be repeated"
        return replace(mechanism, guarantee=guarantee.voided(reason))
    if mechanism.grid is not None or guarantee.argument.endswith(_FLOATING):
        return mechanism
    argument = guarantee.argument + _FLOATING
    return replace(mechanism, guarantee=replace(guarantee, argument=argument))


def _whole(value: object) -> int:
    return checks.count("count", value, least=0)
