"""What a curator has staged or committed and not yet applied, and what it goes on from. Secret."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.curator._changes import Change, Head
from discreet.curator.growing_ledger import GrowingLedger
from discreet.curator.store import Store

_F64 = NDArray[np.float64]


class UnconfirmedCommit(NamedTuple):
    """A commit that was begun, and of which it is not known whether it happened."""

    after: int
    changes: tuple[Change, ...]
    head: Head


class Progress(NamedTuple):
    """Everything between memory and store. It is replaced as a whole.

    Attributes:
        sequence: of the last commit that is known to have happened.
        unconfirmed: the commit that may have happened after it.
        applying: changes that are committed, and not all of them applied.
        queue: changes that are staged, in order.
    """

    sequence: int
    unconfirmed: UnconfirmedCommit | None = None
    applying: tuple[Change, ...] = ()
    queue: tuple[Change, ...] = ()


class Restored(NamedTuple):
    """What a curator goes on from.

    Attributes:
        ledger: all releases so far.
        head: the counts.
        waiting: the actions of decisions that wait, by number.
        sessions: the first decision and the name of each earlier session, in order.
        store: where the learner is stored; None if in memory only.
        sequence: of the store's last commit.
    """

    ledger: GrowingLedger
    head: Head = Head()
    waiting: Mapping[int, _F64] = MappingProxyType({})
    sessions: Sequence[tuple[int, str]] = ()
    store: Store | None = None
    sequence: int = 0
