"""From sums to what is shown: a release is made, entered in the ledger, and only then shown.

What is made and not shown yet is secret: it must not be seen before the ledger that is stored has
it. Nothing here sees a row.
"""

import numpy as np

from discreet.curator.growing_ledger import GrowingLedger
from discreet.curator.store import Store
from discreet.curator.sums import PrefixSums
from discreet.mechanism import Mechanism
from discreet.mechanism import _perturbations as perturbations
from discreet.release import Release
from discreet.release.ledger import fingerprint


class Releases:
    """The releases of one learner.

    Formal guarantee: a release is what `release_of` makes of noisy sums and of nothing else, and
    each number has one entry in the ledger. `shown` never runs ahead of the ledger that is stored,
    whenever the process dies; so no release can be shown, lost, and shown again with other noise.

    Attributes:
        shown: the last release that was shown.
        coming: those that are made and not shown yet, in order.
        ledger: an entry for each release, of those that are coming as well.
    """

    __slots__ = ("_mechanism", "_sums", "_supplied", "coming", "ledger", "shown")

    def __init__(
        self,
        mechanism: Mechanism,
        sums: PrefixSums,
        ledger: GrowingLedger,
        supplied: perturbations.Perturbations | None,
    ) -> None:
        """Start from the last release of the sums, which is in the ledger.

        Args:
            mechanism: that of the sums.
            sums: what releases are made of.
            ledger: what was shown so far.
            supplied: what the caller adds to every release.
        """
        self._mechanism, self._sums, self._supplied = mechanism, sums, supplied
        self.ledger = ledger
        self.shown = release_of(mechanism, sums, supplied)
        self.coming: list[Release] = []

    def make(self) -> None:
        """Make the release that a row led to, and enter it; nothing if that is done already."""
        number = self._sums.number
        last = self.coming[-1] if self.coming else self.shown
        if last.number == number:
            return
        release = release_of(self._mechanism, self._sums, self._supplied)
        if len(self.ledger) < number:
            self.ledger.add(number, release.rows, fingerprint(release))
        self.coming.append(release)

    def show(self, store: Store) -> None:
        """Write the entries of the releases that are coming to a store; then they may be seen."""
        coming = self.coming
        if not coming:
            return
        if store.durable:
            entries = self.ledger.entries
            lines = [entries[one.number - 1].line() for one in coming]
            store.append(coming[0].number, lines)
        self.shown = coming[-1]
        self.coming = []


def release_of(
    mechanism: Mechanism, sums: PrefixSums, supplied: perturbations.Perturbations | None
) -> Release:
    """All that may be shown of the sums.

    Args:
        mechanism: that of the sums.
        sums: the sums with their noise.
        supplied: what the caller adds to every release.

    Returns:
        Their last release.
    """
    dim = mechanism.setting.problem.dim
    gram, moment = np.empty((dim, dim)), np.empty(dim)
    position = sums.position
    sums.unpack(mechanism.shift, gram, moment)
    if supplied is not None:
        extra = perturbations.checked(supplied, position.rows + 1, dim)
        gram += extra[0]
        moment += extra[1]
    spread, weight = sums.amounts()
    return Release(
        number=position.number,
        rows=position.released,
        gram=gram,
        moment=moment,
        spread=spread,
        weight=weight,
        mechanism=mechanism,
    )
