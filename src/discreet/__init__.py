"""Contextual linear bandits under joint differential privacy.

The public names; each is imported from its module when it is first used, so that importing the
package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.version import __version__

if TYPE_CHECKING:
    from discreet import evaluation as evaluation
    from discreet import features as features
    from discreet import replay as replay
    from discreet._view import View, open_read_only
    from discreet.budget import Budget
    from discreet.errors import DiscreetError
    from discreet.learner import Decision, Forgotten, LinUCB, load, read_ledger
    from discreet.mechanism import Mechanism
    from discreet.mechanism import schedules as schedules
    from discreet.mechanism import strategies as strategies
    from discreet.mechanism import variants as variants
    from discreet.mechanism._grid import Grid
    from discreet.mechanism.variants import VARIANTS, Supplied
    from discreet.privacy import Guarantee, Privacy
    from discreet.problem import Problem, Setting
    from discreet.release import Release
    from discreet.release._card import privacy_card
    from discreet.release._ranker import Ranker
    from discreet.release.confidence import Ellipsoid, JointRegion
    from discreet.release.ledger import Ledger
    from discreet.release.policies import UCB, PosteriorUCB, Thompson, greedy
    from discreet.simulation import environments as environments
    from discreet.theory import NoiseBounds

_HOME = {
    "Budget": "budget",
    "Decision": "learner",
    "DiscreetError": "errors",
    "Ellipsoid": "release.confidence",
    "Forgotten": "learner",
    "Grid": "mechanism._grid",
    "Guarantee": "privacy",
    "JointRegion": "release.confidence",
    "Ledger": "release.ledger",
    "LinUCB": "learner",
    "Mechanism": "mechanism",
    "NoiseBounds": "theory",
    "PosteriorUCB": "release.policies",
    "Privacy": "privacy",
    "Problem": "problem",
    "Ranker": "release._ranker",
    "Release": "release",
    "Setting": "problem",
    "Supplied": "mechanism.variants",
    "Thompson": "release.policies",
    "UCB": "release.policies",
    "VARIANTS": "mechanism.variants",
    "View": "_view",
    "greedy": "release.policies",
    "load": "learner",
    "open_read_only": "_view",
    "privacy_card": "release._card",
    "read_ledger": "learner",
}

__all__ = [
    "UCB",
    "VARIANTS",
    "Budget",
    "Decision",
    "DiscreetError",
    "Ellipsoid",
    "Forgotten",
    "Grid",
    "Guarantee",
    "JointRegion",
    "Ledger",
    "LinUCB",
    "Mechanism",
    "NoiseBounds",
    "PosteriorUCB",
    "Privacy",
    "Problem",
    "Ranker",
    "Release",
    "Setting",
    "Supplied",
    "Thompson",
    "View",
    "__version__",
    "greedy",
    "load",
    "open_read_only",
    "privacy_card",
    "read_ledger",
]


_MODULES = {
    "accounting": "accounting",
    "audit": "audit",
    "baselines": "baselines",
    "budget": "budget",
    "client": "client",
    "environments": "simulation.environments",
    "errors": "errors",
    "evaluation": "evaluation",
    "features": "features",
    "mechanism": "mechanism",
    "replay": "replay",
    "schedules": "mechanism.schedules",
    "simulation": "simulation",
    "strategies": "mechanism.strategies",
    "theory": "theory",
    "variants": "mechanism.variants",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  # any public name
    if name in _MODULES:
        return import_module(f"discreet.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(import_module(f"discreet.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
