"""What the paper proves about the confidence radius and about regret, with its constants.

Everything here is a function of stated bounds; no data, no curator.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.kernels import _score as score
from discreet.privacy import Privacy
from discreet.problem import Setting

__all__ = [
    "NoiseBounds",
    "RadiusTerms",
    "gap_regret_bound",
    "gap_scale",
    "gaussian_leading_term",
    "minimax_scale",
    "private_regret_lower_bound",
    "pulls_bound_horizon",
    "pulls_lower_bound",
    "radius_bound",
    "radius_terms",
    "regret_bound",
    "right_action_chance",
    "standard_dp_regret",
    "wishart_leading_term",
]


@dataclass(frozen=True, kw_only=True)
class NoiseBounds:
    """Accurate bounds on the perturbations (H_t, h_t). Paper: def:accurate-params.

    In each round, with probability at least 1 - alpha/2n (docs/errata.md says how far the paper's
    proof of that goes): the eigenvalues of H_t lie within
    [rho_min, rho_max], and the norm of h_t with respect to the inverse of H_t is at most gamma.

    Attributes:
        rho_min: the least eigenvalue.
        rho_max: the largest.
        gamma: the bound on the norm of h_t.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=0.1)
        >>> paper = discreet.variants.calibrate(
        ...     "gaussian", problem, horizon=50_000_000, privacy=privacy
        ... )
        >>> 0 < paper.bounds.rho_min < paper.bounds.rho_max
        True
    """

    rho_min: float
    rho_max: float
    gamma: float

    def __post_init__(self) -> None:
        """Check that the bounds can be met at all."""
        checks.positive("rho_min", self.rho_min)
        checks.at_least("rho_max", self.rho_max, self.rho_min)
        checks.at_least("gamma", self.gamma, 0.0)


class RadiusTerms(NamedTuple):
    """beta_t = noise_scale * sqrt(log det V_t + log_offset) + bias."""

    noise_scale: float
    log_offset: float
    bias: float


def radius_terms(setting: Setting, bounds: NoiseBounds) -> RadiusTerms:
    """The parts of beta_t that do not change from round to round.

    Paper: prop:calc-beta, beta_t = sigma sqrt(2 ln(2/alpha) + ln det V_t - d ln rho_min)
    + S sqrt(rho_max) + gamma.

    Args:
        setting: problem, horizon and failure probability.
        bounds: accurate bounds on the perturbations, shift included.

    Returns:
        The scale of the root, what is added under it, and what is added after it.
    """
    problem = setting.problem
    return RadiusTerms(
        noise_scale=problem.reward_subgaussian,
        log_offset=2 * math.log(2 / setting.failure_prob) - problem.dim * math.log(bounds.rho_min),
        bias=problem.theta_norm * math.sqrt(bounds.rho_max) + bounds.gamma,
    )


def radius_bound(setting: Setting, bounds: NoiseBounds, *, rounds: int) -> float:
    """An upper bound on beta_t at t = ``rounds`` that needs no data. Paper: prop:calc-beta.

    sigma sqrt(2 ln(2/alpha) + d ln(rho_max/rho_min + t L^2/(d rho_min))) + S sqrt(rho_max) + gamma.

    Args:
        setting: problem, horizon and failure probability.
        bounds: accurate bounds on the perturbations, shift included.
        rounds: t, the round that is spoken of.

    Returns:
        The bound.
    """
    problem = setting.problem
    growth = bounds.rho_max + rounds * problem.action_norm**2 / problem.dim
    terms = radius_terms(setting, bounds)
    return score.radius(problem.dim * math.log(growth), *terms)


def _bracket(setting: Setting, bounds: NoiseBounds) -> float:
    """The bracket that both regret theorems share.

    sigma (2 ln(2/alpha) + d ln(rho_max/rho_min + n L^2/(d rho_min)))
    + (S sqrt(rho_max) + gamma) sqrt(d ln(1 + n L^2/(d rho_min))).
    """
    problem, dim = setting.problem, setting.problem.dim
    data = setting.horizon * problem.action_norm**2 / (dim * bounds.rho_min)
    statistical = 2 * math.log(2 / setting.failure_prob) + dim * math.log(
        bounds.rho_max / bounds.rho_min + data
    )
    bias = problem.theta_norm * math.sqrt(bounds.rho_max) + bounds.gamma
    return problem.reward_subgaussian * statistical + bias * math.sqrt(dim * math.log1p(data))


def regret_bound(setting: Setting, bounds: NoiseBounds) -> float:
    """B sqrt(8n) [...], with probability at least 1 - alpha. Paper: thm:linucb-regret.

    Args:
        setting: problem, horizon and failure probability.
        bounds: accurate bounds on the perturbations, shift included.

    Returns:
        The bound on the pseudo-regret at the horizon.
    """
    scale = setting.problem.mean_reward_bound * math.sqrt(8 * setting.horizon)
    return scale * _bracket(setting, bounds)


def gap_regret_bound(setting: Setting, bounds: NoiseBounds, *, gap: float) -> float:
    """(8 B / gap) [...]^2, with probability at least 1 - alpha. Paper: thm:linucb-gap-regret.

    Args:
        setting: problem, horizon and failure probability.
        bounds: accurate bounds on the perturbations, shift included.
        gap: the suboptimality gap.

    Returns:
        The bound on the pseudo-regret at the horizon.

    Raises:
        ParameterError: if the gap is not positive.
    """
    gap = checks.positive("gap", gap)
    return 8 * setting.problem.mean_reward_bound / gap * _bracket(setting, bounds) ** 2


def gaussian_leading_term(setting: Setting, privacy: Privacy) -> float:
    """The inside of the O(.) of cor:regret_with_Gaussian, over B sqrt(n).

    sigma (d ln n + ln 1/alpha) + S L~ ln n sqrt(d (sqrt d + ln(n/alpha)) ln(1/delta) / epsilon).

    Args:
        setting: problem, horizon and failure probability.
        privacy: the target.

    Returns:
        The term, whose constant is not known.
    """
    problem, dim, n = setting.problem, setting.problem.dim, setting.horizon
    spread = math.sqrt(dim) + math.log(n / setting.failure_prob)
    private = math.sqrt(dim * spread * math.log(1 / privacy.delta) / privacy.epsilon)
    return _statistical_term(setting) + (
        problem.theta_norm * problem.row_norm * math.log(n) * private
    )


def wishart_leading_term(setting: Setting, privacy: Privacy) -> float:
    """The inside of the O(.) of cor:regret_with_Wishart, over B sqrt(n).

    sigma (d ln n + ln 1/alpha) + S L~ sqrt(d) ln(n)^(3/4)
    (d^(1/4) + eps^(-1/2) ln(1/delta)^(1/4)) (d^(1/4) + ln(n/alpha)^(1/4)).

    As printed. The theorem gives another factor (ln(n) ln(8m/delta))^(1/4) in the second term (E9).

    Args:
        setting: problem, horizon and failure probability.
        privacy: the target.

    Returns:
        The term, whose constant is not known.
    """
    problem, dim, n = setting.problem, setting.problem.dim, setting.horizon
    noise = math.pow(dim, 0.25) + math.pow(math.log(1 / privacy.delta), 0.25) / math.sqrt(
        privacy.epsilon
    )
    spread = math.pow(dim, 0.25) + math.pow(math.log(n / setting.failure_prob), 0.25)
    return _statistical_term(setting) + (
        problem.theta_norm * problem.row_norm * math.sqrt(dim) * math.pow(math.log(n), 0.75)
    ) * (noise * spread)


def _statistical_term(setting: Setting) -> float:
    dim, n = setting.problem.dim, setting.horizon
    return setting.problem.reward_subgaussian * (
        dim * math.log(n) + math.log(1 / setting.failure_prob)
    )


def minimax_scale(setting: Setting) -> float:
    """B sqrt(n), what a leading term is multiplied by in general."""
    return setting.problem.mean_reward_bound * math.sqrt(setting.horizon)


def gap_scale(setting: Setting, *, gap: float) -> float:
    """B / gap, what a squared leading term is multiplied by under a gap.

    Args:
        setting: problem, horizon and failure probability.
        gap: the suboptimality gap.

    Returns:
        The factor.
    """
    return setting.problem.mean_reward_bound / gap


def right_action_chance(*, epsilon: float, delta: float) -> float:
    """The best chance of the better of two actions under standard (epsilon, delta)-DP.

    Paper: clm:standard_contextual_DP_implies_linear_regret. If the context says which action is
    better, and the action itself must not tell contexts apart, the errors u and v under the two
    contexts obey 1 - u <= e^epsilon v + delta and 1 - v <= e^epsilon u + delta. Added up:
    u + v >= 2 (1 - delta) / (1 + e^epsilon), with equality for randomised response, which is
    right with probability (e^epsilon + delta) / (1 + e^epsilon).

    Args:
        epsilon: the bound on the log ratio of probabilities.
        delta: the probability outside that bound.

    Returns:
        The chance.

    Raises:
        ParameterError: if a number is out of range.
    """
    epsilon = checks.positive("epsilon", epsilon)
    if not 0.0 <= checks.finite("delta", delta) < 1.0:
        raise ParameterError("delta", f"is {delta:g}; give one from 0 to below 1")
    odds = math.exp(-epsilon)
    return (1.0 + delta * odds) / (1.0 + odds)


def standard_dp_regret(*, horizon: int, epsilon: float, delta: float) -> float:
    """The least expected pseudo-regret under standard DP: 2 n (1 - delta) / (1 + e^epsilon).

    Paper: clm:standard_contextual_DP_implies_linear_regret. Against contexts drawn by a fair
    coin, a wrong action costs 2, so no learner that is (epsilon, delta)-DP with respect to the
    current context as well has less, and randomised response has this. It falls in epsilon and in
    delta; at the ends of the claim's range, ln 2 and 1/4, it is n/2, twice what the claim says.

    Args:
        horizon: n, the number of rounds.
        epsilon: the bound on the log ratio of probabilities.
        delta: the probability outside that bound.

    Returns:
        The regret.

    Raises:
        ParameterError: if a number is out of range.
    """
    right_action_chance(epsilon=epsilon, delta=delta)  # its checks
    odds = math.exp(-epsilon)
    return 2.0 * checks.count("horizon", horizon) * (1.0 - delta) * odds / (1.0 + odds)


_LARGEST_GAP = 2.0


def _checked_gap(gap: float) -> float:
    if not 0.0 < checks.finite("gap", gap) <= _LARGEST_GAP:
        raise ParameterError("gap", f"is {gap:g}; give one above 0 and at most {_LARGEST_GAP:g}")
    return float(gap)


def pulls_lower_bound(*, horizon: int, epsilon: float, gap: float) -> float:
    """ln(n) / (100 epsilon gap): how often a private learner pulls an arm at least.

    Paper: clm:LB_pulling_any_arms_many_times. With probability at least 1/2, for any
    epsilon-DP learner whose expected regret is at most n^(3/4), rewards of plus or minus one, and
    n large enough (`pulls_bound_horizon`). The proof moves the arm's mean to gap above the best
    one, so the best mean plus the gap must not exceed 1.

    Args:
        horizon: n, the number of rounds.
        epsilon: the bound on the log ratio of probabilities.
        gap: the suboptimality gap.

    Returns:
        The number of pulls.

    Raises:
        ParameterError: if a number is out of range.
    """
    log_horizon = math.log(checks.count("horizon", horizon, least=2))
    return log_horizon / (100.0 * checks.positive("epsilon", epsilon) * _checked_gap(gap))


def pulls_bound_horizon(*, epsilon: float, gap: float) -> float:
    """From which n on the proof of `pulls_lower_bound` goes through.

    Paper: clm:LB_pulling_any_arms_many_times, "sufficiently large n". It needs
    2 n^(-0.19) / gap <= 1/2, and the bound itself to be at most n/2.

    Args:
        epsilon: the bound on the log ratio of probabilities.
        gap: the suboptimality gap.

    Returns:
        The least n.

    Raises:
        ParameterError: if a number is out of range.
    """
    gap = _checked_gap(gap)
    least = max(2.0, math.pow(4.0 / gap, 1.0 / 0.19))
    slope = 2.0 / (100.0 * checks.positive("epsilon", epsilon) * gap)
    while least < slope * math.log(least):  # n >= slope ln n, from below
        least = slope * math.log(least) * (1.0 + 1e-12)
    return least


def private_regret_lower_bound(*, horizon: int, epsilon: float, n_arms: int) -> float:
    """(k - 1) ln(n) / (200 epsilon): the least expected regret of an epsilon-DP learner.

    Paper: cor:LB_private_MAB, with the constant of its proof: each of k - 1 arms is pulled as
    `pulls_lower_bound` says with probability 1/2, at its gap each time. Under the same conditions.

    Args:
        horizon: n, the number of rounds.
        epsilon: the bound on the log ratio of probabilities.
        n_arms: k, the number of arms.

    Returns:
        The regret.

    Raises:
        ParameterError: if a number is out of range.
    """
    log_horizon = math.log(checks.count("horizon", horizon, least=2))
    others = checks.count("n_arms", n_arms, least=2) - 1
    return others * log_horizon / (200.0 * checks.positive("epsilon", epsilon))
