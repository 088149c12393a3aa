"""The paper's constants, to 1e-9, in the library and through the command line.

The numbers were computed from the paper's formulas (errata heeded) with independent code.
"""

import json

import pytest
from typer.testing import CliRunner

from discreet import Privacy, Problem, Setting
from discreet.cli import app
from discreet.mechanism.planning import plan
from discreet.mechanism.variants import named

FIRST = {
    "horizon": 50_000_000,
    "dim": 5,
    "epsilon": 1,
    "delta": 0.1,
    "failure_prob": 2e-08,
    "action_norm": 1,
    "reward_bound": 1,
    "theta_norm": 1,
    "mean_reward_bound": 1,
    "reward_subgaussian": 1,
    "gap": 0.1,
}
SECOND = {
    "horizon": 1_000_000,
    "dim": 20,
    "epsilon": 0.5,
    "delta": 1e-06,
    "failure_prob": 0.01,
    "action_norm": 2,
    "reward_bound": 1.5,
    "theta_norm": 1,
    "mean_reward_bound": 2,
    "reward_subgaussian": 1.5,
    "gap": 0.05,
}
EXPECTED = [
    (
        FIRST,
        "gaussian",
        {
            "tree_depth": 27,
            "node_noise_std": 153.3438393005348,
            "noise_opnorm_bound": 91545.47281826376,
            "shift": 183090.94563652753,
            "rho_min": 91545.47281826376,
            "rho_max": 274636.4184547913,
            "gamma": 28.280395417848233,
            "radius_bound": 560.1126399389942,
            "regret_bound": 54774956.53083128,
            "gap_regret_bound": 600059172.5908911,
        },
    ),
    (
        FIRST,
        "wishart-unshifted",
        {
            "tree_depth": 27,
            "wishart_dof": 139115,
            "shift": 0.0,
            "rho_min": 7427945.526696856,
            "rho_max": 7596949.739970748,
            "gamma": 15.186954671605283,
            "radius_bound": 2777.858545069033,
            "regret_bound": 115282391.41125081,
            "gap_regret_bound": 2658005953.899367,
        },
    ),
    (
        FIRST,
        "wishart",
        {
            "tree_depth": 27,
            "wishart_dof": 139115,
            "shift": -7258941.313422964,
            "rho_min": 169004.21327389177,
            "rho_max": 338008.42654778354,
            "gamma": 204.02213048248024,
            "radius_bound": 792.9839676251382,
            "regret_bound": 72245328.07779086,
            "gap_regret_bound": 1043877485.8135273,
        },
    ),
    (
        FIRST,
        "nonprivate",
        {
            "shift": 1.0,
            "rho_min": 1.0,
            "rho_max": 1.0,
            "gamma": 0.0,
            "radius_bound": 11.836597263103226,
            "regret_bound": 2528181.2046605386,
            "gap_regret_bound": 1278340.0407197622,
        },
    ),
    (
        SECOND,
        "gaussian",
        {
            "tree_depth": 21,
            "node_noise_std": 3483.171087082761,
            "noise_opnorm_bound": 1266740.639474928,
            "shift": 2533481.278949856,
            "rho_min": 1266740.639474928,
            "rho_max": 3800221.918424784,
            "gamma": 151.1101217250673,
            "radius_bound": 2109.220049445769,
            "regret_bound": 20631028.796252456,
            "gap_regret_bound": 4256393491.9179807,
        },
    ),
    (
        SECOND,
        "wishart-unshifted",
        {
            "tree_depth": 21,
            "wishart_dof": 5170402,
            "shift": 0.0,
            "rho_min": 677199483.2505057,
            "rho_max": 680032520.1457399,
            "gamma": 26.637469279996246,
            "radius_bound": 26108.974047576496,
            "regret_bound": 11438765.861460606,
            "gap_regret_bound": 1308453644.333166,
        },
    ),
    (
        SECOND,
        "wishart",
        {
            "tree_depth": 21,
            "wishart_dof": 5170402,
            "shift": -674366446.3552713,
            "rho_min": 2833036.89523424,
            "rho_max": 5666073.79046848,
            "gamma": 833.0141654681778,
            "radius_bound": 3220.8887451040027,
            "regret_bound": 21445416.806974612,
            "gap_regret_bound": 4599059020.248692,
        },
    ),
    (
        SECOND,
        "nonprivate",
        {
            "shift": 1.0,
            "rho_min": 1.0,
            "rho_max": 1.0,
            "gamma": 0.0,
            "radius_bound": 24.939839644361896,
            "regret_bound": 2249740.3884546547,
            "gap_regret_bound": 50613318.15444101,
        },
    ),
]
CASES = pytest.mark.parametrize(
    ("parameters", "name", "expected"),
    EXPECTED,
    ids=[f"{variant}-d{parameters['dim']}" for parameters, variant, _ in EXPECTED],
)


@CASES
def test_the_library_gives_the_papers_constants(
    parameters: dict, name: str, expected: dict
) -> None:
    bounds = ("dim", "action_norm", "reward_bound", "theta_norm", "mean_reward_bound")
    stated = {key: parameters[key] for key in (*bounds, "reward_subgaussian")}
    setting = Setting(
        problem=Problem(**stated),
        horizon=parameters["horizon"],
        failure_prob=parameters["failure_prob"],
    )
    row = named(name)
    privacy = Privacy(epsilon=parameters["epsilon"], delta=parameters["delta"])
    found = plan(
        row,
        setting.problem,
        horizon=setting.horizon,
        privacy=privacy if row.private else None,
        failure_prob=setting.failure_prob,
        gap=parameters["gap"],
    )
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-9, abs=0)


@CASES
def test_the_command_line_gives_the_papers_constants(
    parameters: dict, name: str, expected: dict
) -> None:
    options = [f"--{key.replace('_', '-')}={value}" for key, value in parameters.items()]
    outcome = CliRunner().invoke(app, ["plan", "--variant", name, "--json", *options])
    assert outcome.exit_code == 0, outcome.output
    found = json.loads(outcome.stdout)
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-9, abs=0)


def test_the_gaussian_norm_bound_matches_the_authors_own_code() -> None:
    # Their code pads the horizon to a power of two and prints rho_min = 92208.7.
    problem = Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1)
    setting = Setting(problem=problem, horizon=2**26, failure_prob=2e-8)
    mechanism = named("gaussian").mechanism(setting, Privacy(epsilon=1, delta=0.1))
    assert mechanism.bounds.rho_min == pytest.approx(92208.7, abs=0.05)
    assert mechanism.noise.std == pytest.approx(153.344, abs=0.0005)
