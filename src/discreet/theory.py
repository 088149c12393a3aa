"""What the paper proves about regret, with its constants.

Everything here is a function of stated bounds; no data, no curator.
"""

import math

from discreet import checks
from discreet.mechanism import NoiseBounds, Setting
from discreet.privacy import Privacy


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
    """B sqrt(8n) [...], with probability at least 1 - alpha. Paper: thm:linucb-regret."""
    scale = setting.problem.mean_reward_bound * math.sqrt(8 * setting.horizon)
    return scale * _bracket(setting, bounds)


def gap_regret_bound(setting: Setting, bounds: NoiseBounds, *, gap: float) -> float:
    """(8 B / gap) [...]^2, with probability at least 1 - alpha. Paper: thm:linucb-gap-regret."""
    gap = checks.positive("gap", gap)
    return 8 * setting.problem.mean_reward_bound / gap * _bracket(setting, bounds) ** 2


def gaussian_leading_term(setting: Setting, privacy: Privacy) -> float:
    """The inside of the O(.) of cor:regret_with_Gaussian, over B sqrt(n).

    sigma (d ln n + ln 1/alpha) + S L~ ln n sqrt(d (sqrt d + ln(n/alpha)) ln(1/delta) / epsilon).
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
    """B / gap, what a squared leading term is multiplied by under a gap."""
    return setting.problem.mean_reward_bound / gap
