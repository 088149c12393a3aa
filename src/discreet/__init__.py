"""Contextual linear bandits under joint differential privacy.

The public names; each is imported from its module when it is first used, so that importing the
package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.version import __version__

if TYPE_CHECKING:
    from discreet.card import privacy_card
    from discreet.confidence import Ellipsoid, JointRegion
    from discreet.errors import DiscreetError
    from discreet.grid import Grid
    from discreet.learner import Decision, LinUCB, load
    from discreet.ledger import Ledger
    from discreet.mechanism import Mechanism, NoiseBounds, Setting
    from discreet.policy import UCB, Thompson, greedy
    from discreet.privacy import Guarantee, Privacy
    from discreet.problem import Problem
    from discreet.release import Release
    from discreet.variants import VARIANTS, Supplied

_HOME = {
    "DiscreetError": "errors",
    "Decision": "learner",
    "Ellipsoid": "confidence",
    "Guarantee": "privacy",
    "JointRegion": "confidence",
    "LinUCB": "learner",
    "Mechanism": "mechanism",
    "Grid": "grid",
    "Ledger": "ledger",
    "NoiseBounds": "mechanism",
    "Privacy": "privacy",
    "Problem": "problem",
    "Release": "release",
    "Setting": "mechanism",
    "Supplied": "variants",
    "Thompson": "policy",
    "UCB": "policy",
    "VARIANTS": "variants",
    "greedy": "policy",
    "load": "learner",
    "privacy_card": "card",
}

__all__ = [
    "UCB",
    "VARIANTS",
    "Decision",
    "DiscreetError",
    "Ellipsoid",
    "Grid",
    "Guarantee",
    "JointRegion",
    "Ledger",
    "LinUCB",
    "Mechanism",
    "NoiseBounds",
    "Privacy",
    "Problem",
    "Release",
    "Setting",
    "Supplied",
    "Thompson",
    "__version__",
    "greedy",
    "load",
    "privacy_card",
]


_MODULES = {
    "accounting",
    "audit",
    "bandits",
    "environments",
    "errors",
    "schedules",
    "standard",
    "strategies",
    "theory",
    "variants",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  # any public name
    if name in _MODULES:
        return import_module(f"discreet.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(import_module(f"discreet.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
