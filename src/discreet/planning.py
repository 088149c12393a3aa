"""What the theory says before any data: `discreet plan`."""

from typing import Any

from discreet import theory
from discreet.confidence import radius_bound
from discreet.mechanism import Setting
from discreet.privacy import Privacy
from discreet.variants import TreeVariant, Unperturbed


def plan(
    variant: TreeVariant | Unperturbed,
    setting: Setting,
    privacy: Privacy | None,
    *,
    gap: float | None = None,
) -> dict[str, Any]:
    """Calibration, bounds and regret of a variant, under the names that reports use.

    Keys: tree_depth, node_noise_std and noise_opnorm_bound (Gaussian) or wishart_dof (Wishart),
    shift, rho_min, rho_max, gamma, radius_bound (at the horizon), regret_bound, leading_term, and
    with a gap gap_regret_bound and gap_leading_term. A leading term is the inside of the O(.) of
    a corollary: its constant is not known, so compare it only with itself.
    """
    mechanism = variant.mechanism(setting, privacy)
    bounds = mechanism.bounds
    found: dict[str, Any] = {"variant": variant.name}
    if mechanism.noise is not None:
        found |= {"tree_depth": mechanism.levels, **mechanism.noise.describe(setting)}
    found |= {
        "shift": mechanism.shift,
        "rho_min": bounds.rho_min,
        "rho_max": bounds.rho_max,
        "gamma": bounds.gamma,
        "radius_bound": radius_bound(setting, bounds, rounds=setting.horizon),
        "regret_bound": theory.regret_bound(setting, bounds),
    }
    if gap is not None:
        found["gap_regret_bound"] = theory.gap_regret_bound(setting, bounds, gap=gap)
    if privacy is not None and variant.leading_term is not None:
        term = variant.leading_term(setting, privacy)
        found["leading_term"] = theory.minimax_scale(setting) * term
        if gap is not None:
            found["gap_leading_term"] = theory.gap_scale(setting, gap=gap) * term**2
    found["guarantee"] = mechanism.guarantee.to_json()
    return found
