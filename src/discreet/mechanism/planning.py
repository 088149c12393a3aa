"""What the theory says before any data: `discreet plan`."""

from typing import Any

from discreet import _checks as checks
from discreet import accounting, theory
from discreet.errors import ParameterError
from discreet.mechanism import _prospects as prospects
from discreet.mechanism import _regret as regret
from discreet.mechanism._mechanism import Mechanism
from discreet.mechanism.strategies import Windows
from discreet.mechanism.variants import Named, calibrate, named
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
    n_actions: int = prospects.ACTIONS,
    best: float = prospects.BEST,
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
    those of what its filter makes of all releases so far.

    `tight` also has regret_bound, and with a gap gap_regret_bound (docs/regret.md), if a horizon is
    given; and paper_regret_bound and paper_gap_regret_bound, the paper's for its Gaussian noise
    at the same target, where the paper has one. The policy of `windows` has no regret theorem.

    Variants with a confidence set of ours, and `nonprivate`, also have half_gain_rows; see the
    function of that name. It is null in JSON if it is beyond 10^12.

    Args:
        variant: a row of the table of variants.
        problem: the stated bounds.
        horizon: the most rounds that will be played; None, for variants that allow it, if that is
            not known.
        privacy: the target; None for variants that promise nothing.
        failure_prob: alpha, for all confidence statements together; the usual one if left out.
        gap: the suboptimality gap, for the bounds that depend on one.
        n_actions: actions in a decision set, for half_gain_rows.
        best: how good the best of them is, for half_gain_rows.

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
        if mechanism.policy == "ucb" and privacy is not None and horizon is not None:
            found |= _regret_beside_the_papers(mechanism, privacy, gap)
    else:
        found |= _paper(mechanism, mechanism.bounds, gap)
    if privacy is not None and variant.leading_term is not None:
        term = variant.leading_term(setting, privacy)
        found["leading_term"] = theory.minimax_scale(setting) * term
        if gap is not None:
            found["gap_leading_term"] = theory.gap_scale(setting, gap=gap) * term**2
    if mechanism.policy == "posterior" or mechanism.bounds is None:
        found["half_gain_rows"] = half_gain_rows(mechanism, n_actions=n_actions, best=best)
    found["guarantee"] = mechanism.guarantee.to_json()
    return found


def half_gain_rows(
    mechanism: Mechanism,
    *,
    n_actions: int = prospects.ACTIONS,
    best: float = prospects.BEST,
) -> int | None:
    """After about how many rows a learner gains half of what the best choices gain over chance.

    Chance is a uniform choice from the decision set, and the best choice is that of somebody who
    knows the parameter. Before there are this many rows the learner gains less than half of the
    difference in mean reward between the two, and soon after more. The number is worked out from
    public things alone, for a learner that plays its posterior (`policies.PosteriorUCB`), under
    these assumptions: actions and the parameter are as long as the stated bounds allow, rewards
    scatter as much, and in each round one action is better than the others, which point anywhere.
    If actions are shorter, or differ less, it takes longer (docs/prospects.md).

    Args:
        mechanism: the noise, the bounds and the release times, such as ``bandit.mechanism``.
        n_actions: actions in a decision set, at least 2.
        best: the mean reward of a round's best action, as a share of the largest that the bounds
            allow: above 0, at most 1.

    Returns:
        The number of rows; None if it is beyond 10^12.

    Raises:
        ParameterError: a number is out of range, or the law of the noise is not known.
    """
    _ = mechanism.posterior_terms  # or an error that says why not
    choices = prospects.Choices(mechanism.setting.problem.dim, n_actions, best)
    return prospects.half_gain_rows(mechanism, choices)


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


def _regret_beside_the_papers(
    mechanism: Mechanism, privacy: Privacy, gap: float | None
) -> dict[str, Any]:
    """The bounds of docs/regret.md, and those of the paper at the same target if it has any."""
    found = {"regret_bound": regret.regret_bound(mechanism)}
    if gap is not None:
        found["gap_regret_bound"] = regret.gap_regret_bound(mechanism, gap=gap)
    try:
        paper = named("gaussian").mechanism(mechanism.setting, privacy)
    except ParameterError:  # the paper's constants are for replacement of one round
        return found
    if paper.bounds is not None:
        found["paper_regret_bound"] = theory.regret_bound(paper.setting, paper.bounds)
        if gap is not None:
            bound = theory.gap_regret_bound(paper.setting, paper.bounds, gap=gap)
            found["paper_gap_regret_bound"] = bound
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
