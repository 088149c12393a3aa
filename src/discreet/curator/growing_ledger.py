"""A ledger that grows: what the curator holds of one. Users get its `view`, which does not."""

import re

from discreet.errors import ParameterError, RewoundStateError, StateFileError
from discreet.release.ledger import MOST_ROWS, Entry, Ledger

_DIGEST = re.compile(r"[0-9a-f]{64}")


class GrowingLedger(Ledger):
    """All releases of one learner so far; the next is added at its end."""

    def __len__(self) -> int:
        return len(self._store)

    def view(self, count: int | None = None) -> Ledger:
        """The ledger as it is now, for users: it stays so, and nothing can be added to it.

        It looks at the same entries, so it costs the same however many there are. With ``count``
        it is the ledger as it was after so many releases.
        """
        view = Ledger.__new__(Ledger)
        vars(view).update(vars(self), _count=len(self) if count is None else count)
        return view

    def append(self, number: int, rows: int, sha256: str) -> Entry:
        """The next release: numbers go up by one, and rows do not go down."""
        self.add(number, rows, sha256)
        return self.entries[-1]

    def add(self, number: int, rows: int, sha256: str) -> None:
        """`append` without its result, which takes longer: the chain is left for later."""
        count = len(self._store)
        last = self._store.facts(count - 1)[0] if count else 0
        if number != count + 1:
            raise ParameterError("number", f"is {number!r}; the next release is {count + 1}")
        if type(rows) is not int or not last <= rows < MOST_ROWS:
            raise ParameterError("rows", f"is {rows!r}, but the last release had {last}")
        if not isinstance(sha256, str) or not _DIGEST.fullmatch(sha256):
            raise ParameterError("sha256", "is not a digest; give 64 hexadecimal digits")
        self._store.add(rows, sha256)

    def require_head(self, head: str) -> None:
        """Refuse a ledger in which this head, kept elsewhere, does not come up."""
        known = {self.root, *(entry.chain for entry in self.entries)}
        if head not in known:
            raise RewoundStateError(
                "ledger_head",
                "is not in the ledger: the learner was restored from before it, or continued "
                "elsewhere. Restore the newest state and ledger, or start a new learner",
            )

    def reconcile(self, number: int, rows: int, sha256: str | None) -> Entry | None:
        """Compare with a state that has made ``number`` releases, the last with these contents.

        A crash may have come between the state and the ledger: then the next entry is appended here
        and returned, and has to be written to the file before anything is shown. None if nothing is
        missing.
        """
        if number == len(self) + 1 and sha256 is not None:
            return self.append(number, rows, sha256)
        if number > len(self):
            raise StateFileError(
                "path",
                f"has made {number} releases and its ledger has {len(self)}; they do not belong "
                "together, so restore the newest ledger",
            )
        if number < len(self):
            raise RewoundStateError(
                "path",
                f"holds an older state than its ledger: {len(self)} releases were made and this "
                f"state knows {number}; continuing would show new releases of the same noise or of "
                "rows already paid for. Restore the newest state, or start a new learner",
            )
        if number and (self.rows, self.entries[-1].sha256) != (rows, sha256):
            raise RewoundStateError(
                "path",
                f"holds another release {number} than its ledger: the state was continued twice. "
                "Restore the one that belongs to the ledger, or start a new learner",
            )
        return None
