"""The public side: what leaves the curator, and everything that is made of it alone.

`Release` is the one type that leaves; `confidence` turns one into a confidence set, `policies` turn
that into a choice, `ledger` chains all releases of a learner. Nothing here holds or sees a row.
"""

from discreet.release._release import Release

__all__ = ["Release"]
