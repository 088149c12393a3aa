"""How much noise a privacy target needs, and what given noise costs.

`_gdp` and `_zcdp` turn a target (epsilon, delta) into the parameter of a family of guarantees and
back, and `_discrete_gaussian` does so for discrete Gaussian noise; `_rows` says what one row costs
in one noisy sum, `_composition` what it costs in all releases, `_several` what several mechanisms
cost together; `_paper` has the paper's formulas.
Everything is rounded towards privacy: a cost up, a budget down. Nothing here holds or sees a row.
"""

from discreet.accounting._composition import (
    gaussian_node_std_gdp,
    group_cost,
    strategy_cost,
    tree_cost,
    tree_length,
)
from discreet.accounting._discrete_gaussian import discrete_gaussian_mu, discrete_gaussian_trace
from discreet.accounting._gdp import gaussian_delta, gaussian_epsilon, gaussian_mu
from discreet.accounting._paper import gaussian_node_std, paper_gaussian_mu, wishart_node_dof
from discreet.accounting._rows import (
    Neighbours,
    RowScales,
    best_ratio,
    reward_cost,
    reward_std,
    row_cost,
    row_scales,
)
from discreet.accounting._search import upwards
from discreet.accounting._several import composed_mu, group_of_two, traced_delta, traced_mu
from discreet.accounting._zcdp import zcdp_delta, zcdp_epsilon, zcdp_of_gdp, zcdp_parameter
from discreet.problem import tree_depth

__all__ = [
    "Neighbours",
    "RowScales",
    "best_ratio",
    "composed_mu",
    "discrete_gaussian_mu",
    "discrete_gaussian_trace",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_node_std",
    "gaussian_node_std_gdp",
    "group_cost",
    "group_of_two",
    "paper_gaussian_mu",
    "reward_cost",
    "reward_std",
    "row_cost",
    "row_scales",
    "strategy_cost",
    "traced_delta",
    "traced_mu",
    "tree_cost",
    "tree_depth",
    "tree_length",
    "upwards",
    "wishart_node_dof",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_of_gdp",
    "zcdp_parameter",
]
