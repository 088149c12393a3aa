"""A learner in memory only: nothing is stored, and nothing can fail."""

from collections.abc import Sequence

from discreet.curator.store import Commit, Place


class MemoryStore:
    """A sequence number, and nothing else; a curator asks it only whether it is durable."""

    place = None
    durable = False

    def __init__(self) -> None:
        """Start at 0."""
        self._sequence = 0

    def is_at(self, place: Place) -> bool:
        """It is nowhere."""
        del place
        return False

    def commit(self, change: Commit) -> None:
        """Count."""
        self._sequence = change.after

    def sequence(self) -> int:
        """The number of changes."""
        return self._sequence

    def append(self, first: int, lines: Sequence[bytes]) -> None:
        """The learner's own ledger has them."""

    def close(self) -> None:
        """There is nothing to give up."""

    def discard(self) -> None:
        """There is nothing to remove."""

    def abandon(self) -> None:
        """There is nothing to share."""
