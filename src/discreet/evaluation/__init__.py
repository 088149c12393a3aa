"""Values of policies from logged rounds: exact for the curator, released privately for others.

`Values` takes a stream of logged rounds and gives the values of several policies by replay,
importance weights, self-normalised weights and doubly robust estimates, with intervals: an
`ExactValue` is for the curator alone. `PrivateValues` takes the same stream and releases values
once, with noise: a `PrivateValue` is for everybody. docs/evaluation.md has what each assumes.

`_log` reads chunks; `_tally` and `_moments` sum them up for `Values`, in `_exact`. `_private` holds
the raw sums of `PrivateValues`, `_calibration` says how much noise they get, and `_release` makes
values of what was released. `_results` is what both show.
"""

from discreet.evaluation._exact import Values, accept
from discreet.evaluation._private import PrivateValues
from discreet.evaluation._results import Comparison, ExactValue, Overlap, PrivateValue

__all__ = [
    "Comparison",
    "ExactValue",
    "Overlap",
    "PrivateValue",
    "PrivateValues",
    "Values",
    "accept",
]
