"""How much noise a privacy target needs: the paper's composition over the tree.

Neighbours throughout: replacement of one row. A row touches at most one node at each of the m
levels of the tree, so one replacement changes at most m nodes.
"""

import math

from discreet.accounting._gdp import gaussian_delta
from discreet.errors import ParameterError
from discreet.privacy import Privacy


def paper_gaussian_mu(privacy: Privacy) -> float:
    """The mu at which the paper's Gaussian calibration runs, epsilon / (4 ln(4/delta)) (E4).

    Args:
        privacy: the target (epsilon, delta).

    Returns:
        The mu. It is more than the target allows if epsilon is very large; see `gaussian_node_std`.
    """
    return privacy.epsilon / (4 * math.log(4 / privacy.delta))


def gaussian_node_std(*, privacy: Privacy, depth: int, row_norm: float) -> float:
    """Scale of a node, sigma_noise = 4 sqrt(m) L~^2 ln(4/delta) / epsilon. Paper: sec:dp-gauss.

    Sensitivity: replacing a row moves a node's augmented Gram matrix by at most sqrt(2) L~^2 in
    Frobenius norm; against noise whose diagonal variance is doubled the distance that counts is
    that norm over sqrt(2), so L~^2 (E1). Over m nodes the releases are mu-GDP with
    mu = epsilon / (4 ln(4/delta)). The formula is generous for all but very large epsilon, where
    it fails; there it is refused.

    Args:
        privacy: the target (epsilon, delta).
        depth: m, the levels of the tree, as `tree_depth` says.
        row_norm: L~, the bound on the norm of a row, an action with its reward.

    Returns:
        The standard deviation of a node's noise: of the moment, and of the Gram matrix off its
        diagonal. On the diagonal it is sqrt(2) times that.

    Raises:
        ParameterError: epsilon is so large that the formula is not private.
    """
    mu = paper_gaussian_mu(privacy)
    if gaussian_delta(epsilon=privacy.epsilon, mu=mu) > privacy.delta:
        raise ParameterError(
            "epsilon",
            f"is {privacy.epsilon:g}, too large for the paper's Gaussian calibration to be private "
            f"at delta {privacy.delta:g}; ask for a smaller epsilon",
        )
    return 4 * math.sqrt(depth) * row_norm**2 * math.log(4 / privacy.delta) / privacy.epsilon


def wishart_node_dof(*, privacy: Privacy, depth: int, dim: int) -> int:
    """Degrees of freedom of a node, k = d + 1 + ceil(224 m eps^-2 ln(8m/delta) ln(2/delta)).

    Paper: sec:dp-wishart.

    Each node is (eps0, delta0)-DP with eps0 = eps / sqrt(8 m ln(2/delta)), delta0 = delta/(2m)
    by thm:wishart-cont-dp, which needs eps0 < 1 and delta0 < 1/e. The m nodes compose to
    (eps, delta) by Kairouz, Oh & Viswanath (2015) if m eps0 tanh(eps0/2) <= eps/2. Both hold
    for all but large epsilon; there the calibration is refused.

    Args:
        privacy: the target (epsilon, delta).
        depth: m, the levels of the tree, as `tree_depth` says.
        dim: d, the number of features of an action.

    Returns:
        The degrees of freedom k. The noise's scale is the square of the bound on a row's norm.

    Raises:
        ParameterError: epsilon or delta is larger than the mechanism is proven for.
    """
    log_term = math.log(2 / privacy.delta)
    node_epsilon = privacy.epsilon / math.sqrt(8 * depth * log_term)
    composed = depth * node_epsilon * math.tanh(node_epsilon / 2) + privacy.epsilon / 2
    node_delta = privacy.delta / (2 * depth)
    if node_epsilon >= 1 or node_delta >= 1 / math.e or composed > privacy.epsilon:
        raise ParameterError(
            "epsilon",
            f"is {privacy.epsilon:g} with delta {privacy.delta:g}, beyond what the Wishart "
            "mechanism is proven for; ask for a smaller epsilon or delta",
        )
    needed = 224 * depth * math.log(8 * depth / privacy.delta) * log_term / privacy.epsilon**2
    return dim + 1 + math.ceil(needed)
