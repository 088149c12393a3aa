"""What the theory says before any data: `discreet plan`."""

from typing import Any

from discreet import _checks as checks
from discreet import accounting, theory
from discreet.mechanism._mechanism import Mechanism
from discreet.mechanism.strategies import Windows
from discreet.mechanism.variants import Named, calibrate
from discreet.privacy import Privacy
from discreet.problem import Problem
from discreet.theory import NoiseBounds


def plan(
    variant: Named,
    problem: Problem,
    *,
    horizon: int | None,
    privacy: Privacy | None,
    failure_prob: float | None = None,
    gap: float | None = None,
) -> dict[str, Any]:
    """Calibration, bounds and regret of a variant, under the names that reports use.

    Keys for the paper's variants: tree_depth, node_noise_std and noise_opnorm_bound (Gaussian) or
    wishart_dof (Wishart), shift, rho_min, rho_max, gamma, radius_bound (at the horizon),
    regret_bound, leading_term, and with a gap gap_regret_bound and gap_leading_term. A leading
    term is the inside of the O(.) of a corollary: its constant is not known, so compare it only
    with itself.

    Keys for `tight`: releases, gdp_mu, column_norm, gram_noise_std and moment_noise_std of one
    draw, first_noise_scale and last_noise_scale in multiples of it. `windows` has the same and
    first_release_rows, the number of rows that its first release waits for, and memory, if it has
    one. Noise scales are
    those of what its filter makes of all releases so far. Neither has a regret theorem.

    Args:
        variant: a row of the table of variants.
        problem: the stated bounds.
        horizon: the most rounds that will be played; None, for variants that allow it, if that is
            not known.
        privacy: the target; None for variants that promise nothing.
        failure_prob: alpha, for all confidence statements together; the usual one if left out.
        gap: the suboptimality gap, for the bounds that depend on one.

    Returns:
        The figures by name, the guarantee last.

    Raises:
        ParameterError: if the variant cannot do what is asked for.
    """
    mechanism = calibrate(
        variant, problem, horizon=horizon, privacy=privacy, failure_prob=failure_prob
    )
    setting = mechanism.setting
    if gap is not None:
        checks.positive("gap", gap)
    found: dict[str, Any] = {"variant": variant.name}
    if mechanism.bounds is None:
        found |= _correlated(mechanism, privacy)
    else:
        found |= _paper(mechanism, mechanism.bounds, gap)
    if privacy is not None and variant.leading_term is not None:
        term = variant.leading_term(setting, privacy)
        found["leading_term"] = theory.minimax_scale(setting) * term
        if gap is not None:
            found["gap_leading_term"] = theory.gap_scale(setting, gap=gap) * term**2
    found["guarantee"] = mechanism.guarantee.to_json()
    return found


def _paper(mechanism: Mechanism, bounds: NoiseBounds, gap: float | None) -> dict[str, Any]:
    setting = mechanism.setting
    found: dict[str, Any] = {}
    if mechanism.noise is not None:
        found |= {"tree_depth": mechanism.levels, **mechanism.noise.describe(setting)}
    found |= {
        "shift": mechanism.shift,
        "rho_min": bounds.rho_min,
        "rho_max": bounds.rho_max,
        "gamma": bounds.gamma,
        "radius_bound": theory.radius_bound(setting, bounds, rounds=setting.horizon),
        "regret_bound": theory.regret_bound(setting, bounds),
    }
    if gap is not None:
        found["gap_regret_bound"] = theory.gap_regret_bound(setting, bounds, gap=gap)
    return found


def _correlated(mechanism: Mechanism, privacy: Privacy | None) -> dict[str, Any]:
    strategy, norms = mechanism.strategy, mechanism.noise_table.norms
    if privacy is None or strategy is None:
        return {}
    law = mechanism.law
    found = {
        "releases": mechanism.schedule.count(mechanism.setting.horizon),
        "gdp_mu": accounting.gaussian_mu(privacy),
        "column_norm": strategy.column_norm(mechanism.releases),
        "gram_noise_std": law.scale,
        "moment_noise_std": law.moment_scale,
        "first_noise_scale": float(norms[0]),
        "last_noise_scale": float(norms[-1]),
    }
    if isinstance(strategy, Windows):
        found["first_release_rows"] = mechanism.schedule.after(0)
        if strategy.memory is not None:
            found["memory"] = strategy.memory
    return found
