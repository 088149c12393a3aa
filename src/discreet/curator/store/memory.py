"""A learner in memory only: nothing is stored, and nothing can fail."""

from collections.abc import Sequence

from discreet.curator.store import Commit, Place


class MemoryStore:
    """A sequence number, and nothing else; a curator asks it only whether it is durable."""

    place = None
    durable = False

    def __init__(self) -> None:
        """Start at sequence number 0."""
        self._sequence = 0

    def is_at(self, place: Place) -> bool:
        """Always False: a learner in memory has no place."""
        del place
        return False

    def commit(self, change: Commit) -> None:
        """Store nothing; remember the sequence number."""
        self._sequence = change.after

    def sequence(self) -> int:
        """The sequence number after the last change."""
        return self._sequence

    def append(self, first: int, lines: Sequence[bytes]) -> None:
        """Nothing to do: the ledger in memory has the lines already."""

    def close(self) -> None:
        """Nothing to do: nothing is open."""

    def discard(self) -> None:
        """Nothing to do: nothing was made."""

    def abandon(self) -> None:
        """Nothing to do: nothing is shared with the parent of a forked child."""
