"""The privacy card: what a learner promises, by what means, as one JSON object. All public."""

import math
from dataclasses import asdict
from typing import Any

from discreet.mechanism import Mechanism
from discreet.mechanism._codec import noise_to_json
from discreet.mechanism._cost import HasTwoScales
from discreet.mechanism.noise._discrete import ExactNoise
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

    Args:
        mechanism: the learner's.
        learner: its id, if it has one.
        releases: how many there have been.
        rows: how many rows are in the last one.

    ``mu`` is how far one person's rounds can move all releases together, in standard deviations of
    their noise: the parameter of Gaussian differential privacy. ``zcdp`` is mu^2/2. Both are null
    where nothing is promised, and for Wishart noise, whose proof is another.
    """
    guarantee, setting = mechanism.guarantee, mechanism.setting
    promise = guarantee.to_json()
    cost = mechanism.cost if guarantee.private else None
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
        "bounds": asdict(setting.problem),
        "horizon": setting.horizon,
        "failure_prob": setting.failure_prob,
        "most_releases": mechanism.releases,
        "schedule": mechanism.schedule.to_json(),
        "strategy": None if mechanism.strategy is None else mechanism.strategy.to_json(),
        "noise": _noise(mechanism),
        "grid": None if mechanism.grid is None else mechanism.grid.to_json(),
    }


def _noise(mechanism: Mechanism) -> dict[str, Any]:
    """One draw: its law, whether it is drawn exactly, and how large it is.

    Deviations are of the Gram matrix off and on its diagonal, and of the moment: in the data's
    units, and in steps of the grid where there is one.
    """
    law: object = mechanism.noise
    std = steps = None
    if isinstance(law, HasTwoScales):
        std = _deviations(law.std, math.sqrt(2) * law.std, law.moment_std)
    if isinstance(law, ExactNoise):
        steps = _deviations(law.gram_steps, law.diagonal_steps, law.moment_steps)
    parameters = noise_to_json(mechanism.noise)
    return {
        "kind": None if parameters is None else parameters["family"],
        "exact": steps is not None,
        "std": std,
        "std_steps": steps,
        "parameters": parameters,
    }


def _deviations(gram: float, diagonal: float, moment: float) -> dict[str, float]:
    return {"gram": gram, "gram_diagonal": diagonal, "moment": moment}
