"""The privacy card: what a learner promises, by what means, as one JSON object. All public."""

import math
from typing import Any

from discreet.mechanism import Mechanism, _codec
from discreet.mechanism._cost import HasTwoScales
from discreet.mechanism.noise._discrete_gaussian import DiscreteGaussianNoise
from discreet.version import __version__

FORMAT = "discreet-privacy-card"
VERSION = 1


def privacy_card(
    mechanism: Mechanism,
    *,
    learner: str | None = None,
    releases: int | None = None,
    rows: int | None = None,
) -> dict[str, Any]:
    """Everything that a reader needs to judge a guarantee, in plain JSON.

    ``mu`` is how far one person's rounds can move all releases together, in standard deviations of
    their noise: the parameter of Gaussian differential privacy. ``zcdp`` is mu^2/2. Both are null
    where nothing is promised, and for Wishart noise, whose proof is another. ``features`` is the
    digest of the public feature map, where one is stated, and ``memory`` how many rows the learner
    remembers, where it forgets.

    Args:
        mechanism: what the learner draws, and what it promises.
        learner: its id, if it has one.
        releases: how many there have been.
        rows: how many rows are in the last one.

    Returns:
        The card.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> card = discreet.privacy_card(bandit.mechanism)
        >>> card["epsilon"], card["neighbours"]
        (1.0, 'replacement')
    """
    guarantee, setting = mechanism.guarantee, mechanism.setting
    promise, entry = guarantee.to_json(), _codec.to_json(mechanism)
    cost = mechanism.cost if guarantee.private else None
    bounds = entry["setting"]["problem"]
    features, memory = {}, {}
    if mechanism.memory is not None:
        memory["memory"] = mechanism.memory
        promise["text"] += (
            f" The learner forgets: after {mechanism.memory:,} more rows a row counts e times "
            "less in its choices. Nobody's promise depends on that."
        )
    if "features" in bounds:
        features["features"] = bounds.pop("features")
        promise["text"] += (
            f" Rows are made by the public feature map with digest {features['features']}, which "
            "is not fitted to data."
        )
    return {
        "format": FORMAT,
        "version": VERSION,
        "discreet": __version__,
        "learner": learner,
        "releases": releases,
        "rows": rows,
        "variant": mechanism.variant,
        **promise,
        "mu": cost,
        "zcdp": None if cost is None else cost * cost / 2,
        "bounds": bounds,
        **features,
        **memory,
        "horizon": setting.horizon,
        "failure_prob": setting.failure_prob,
        "most_releases": mechanism.releases,
        "schedule": entry["schedule"],
        "strategy": entry["strategy"],
        "noise": _noise(mechanism, entry["noise"]),
        "grid": (entry["noise"] or {}).get("grid"),
    }


def _noise(mechanism: Mechanism, parameters: dict[str, Any] | None) -> dict[str, Any]:
    """One draw: its law, whether it is drawn exactly, and how large it is.

    Deviations are of the Gram matrix off and on its diagonal, and of the moment: in the data's
    units, and in steps of the grid where there is one.
    """
    law: object = mechanism.noise
    std = steps = None
    if isinstance(law, HasTwoScales):
        std = _deviations(law.std, math.sqrt(2) * law.std, law.moment_std)
    if isinstance(law, DiscreteGaussianNoise):
        steps = _deviations(law.gram_steps, law.diagonal_steps, law.moment_steps)
    return {
        "kind": None if parameters is None else parameters["family"],
        "exact": steps is not None,
        "std": std,
        "std_steps": steps,
        "parameters": parameters,
    }


def _deviations(gram: float, diagonal: float, moment: float) -> dict[str, float]:
    return {"gram": gram, "gram_diagonal": diagonal, "moment": moment}
