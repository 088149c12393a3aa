"""Attacks that try to show more than a guarantee allows: lower bounds on epsilon.

`run` attacks a configuration or any way to make learners, and sets what it finds beside the claim.
A bound above the claim refutes it, up to the stated confidence. One below proves nothing.
What each attack does: docs/audit.md. `run_arms` does the same for multi-armed learners and
`run_linear` for linear ones (`discreet.baselines`).

`_audit` has `run` and its results, `_attacks` the attacks, `_streams` the rows that they play,
`_trials` makes learners and plays to them, `_arms` and `_linear` have all of it for baselines, and
`_statistics` turns what was seen into bounds.
"""

from discreet.audit._arms import ARM_ATTACKS, run_arms
from discreet.audit._attacks import ATTACKS
from discreet.audit._audit import Audit, Config, Finding, run
from discreet.audit._linear import run_linear
from discreet.audit._trials import AuditedLearner

__all__ = [
    "ARM_ATTACKS",
    "ATTACKS",
    "Audit",
    "AuditedLearner",
    "Config",
    "Finding",
    "run",
    "run_arms",
    "run_linear",
]
