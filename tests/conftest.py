"""Shared fixtures: a small problem, and every row of the table of variants."""

import pytest

from discreet import Problem, Setting
from discreet.variants import VARIANTS

TABLES = {
    "variant": list(VARIANTS.values()),
    "private_variant": [row for row in VARIANTS.values() if row.private],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `variant` or `private_variant` over the table of variants."""
    for name, rows in TABLES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, rows, ids=[row.name for row in rows])


@pytest.fixture
def problem() -> Problem:
    return Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)


@pytest.fixture
def setting(problem: Problem) -> Setting:
    return Setting(problem=problem, horizon=64, failure_prob=0.05)
