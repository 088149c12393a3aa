"""The command line: its JSON, its tables, and one line for every error."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet import __version__
from discreet.cli import app
from discreet.learner import LinUCB
from discreet.mechanism.variants import VARIANTS
from discreet.privacy import Privacy
from discreet.problem import Problem, Setting

TIGHT = ["plan", "--horizon=1e6", "--dim=3", "--epsilon=1", "--delta=1e-6"]
PLAN = ["plan", "--variant=gaussian", "--horizon=1e6", "--dim=3", "--epsilon=1", "--delta=1e-6"]
SIMULATE = ["simulate", "--variant=gaussian", "--horizon=1000", "--dim=3", "--epsilon=1"]
SIMULATE = [*SIMULATE, "--delta=1e-6", "--seeds=2", "--jobs=1"]


def discreet(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "discreet", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def as_json(*arguments: str) -> dict:
    outcome = CliRunner().invoke(app, [*arguments, "--json"])
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


def test_simulate_keeps_its_contract(variant) -> None:  # noqa: ANN001
    found = as_json(*SIMULATE, f"--variant={variant.name}", "--rounds=300", "--gap=0.1")
    assert found["variant"] == variant.name
    assert found["rounds"] == 300
    assert found["seeds"] == 2
    regret = found["pseudo_regret"]
    assert set(regret) == {"mean", "stderr", "per_seed", "curve"}
    assert len(regret["per_seed"]) == 2
    assert regret["curve"][-1] == [300, pytest.approx(regret["mean"])]
    assert found["rounds_per_second"] > 0
    assert found["guarantee"]["epsilon"] == (1.0 if variant.private else None)


@pytest.mark.parametrize("env", ["sphere", "fixed", "basis"])
@pytest.mark.parametrize("policy", ["ucb", "thompson", "greedy"])
def test_simulate_knows_every_environment_and_policy(env: str, policy: str) -> None:
    found = as_json(*SIMULATE, f"--env={env}", f"--policy={policy}", "--actions=4")
    assert found["pseudo_regret"]["mean"] > 0


def test_simulate_takes_gaussian_rewards_trees_and_shifts() -> None:
    as_json(*SIMULATE, "--variant=nonprivate", "--rewards=gaussian", "--shift=2.5")
    as_json(*SIMULATE, "--tree=covering")
    as_json(*SIMULATE, "--rho-min=1e5")


def test_seeds_can_be_continued() -> None:
    both = as_json(*SIMULATE)["pseudo_regret"]["per_seed"]
    second = as_json(*SIMULATE, "--seeds=1", "--first-seed=1")["pseudo_regret"]["per_seed"]
    assert both[1:] == second


def test_plan_gives_the_gap_bound_only_with_a_gap() -> None:
    assert "gap_regret_bound" not in as_json(*PLAN)
    found = as_json(*PLAN, "--gap=0.1")
    assert found["gap_regret_bound"] > 0
    assert found["leading_term"] > 0
    assert "joint differential privacy" in found["guarantee"]["text"]


def test_plan_takes_the_same_options_for_every_variant(variant) -> None:  # noqa: ANN001
    assert as_json(*PLAN, f"--variant={variant.name}")["variant"] == variant.name


def test_the_default_variant_is_the_learner_s() -> None:
    default = inspect.signature(LinUCB).parameters["variant"].default
    assert as_json(*TIGHT)["variant"] == default == "tight"
    few = ["simulate", "--horizon=300", "--epsilon=1", "--delta=1e-6", "--seeds=1", "--jobs=1"]
    assert as_json(*few)["variant"] == default


def test_a_plan_of_tight_has_its_own_keys_in_json_and_table() -> None:
    found = as_json(*TIGHT)
    keys = {"releases", "gdp_mu", "column_norm", "gram_noise_std", "moment_noise_std"}
    keys |= {"first_noise_scale", "last_noise_scale"}
    assert set(found) == keys | {"variant", "guarantee"}
    table = CliRunner().invoke(app, TIGHT).stdout
    assert all(key in table for key in keys)


def test_a_plan_without_a_theorem_says_that_it_does_not_use_the_gap() -> None:
    outcome = CliRunner().invoke(app, [*TIGHT, "--gap=0.1", "--json"])
    assert "--gap is not used" in outcome.stderr
    assert json.loads(outcome.stdout) == as_json(*TIGHT)


def test_a_horizon_may_be_open() -> None:
    row, problem = VARIANTS["tight"], Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
    mechanism = row.mechanism(Setting.over(problem, None), Privacy(epsilon=1, delta=1e-6))
    assert as_json(*TIGHT, "--horizon=none")["releases"] == mechanism.releases
    played = as_json(*SIMULATE, "--variant=tight", "--horizon=None", "--rounds=300")
    assert played["rounds"] == 300


def test_gaussian_accounting_needs_less_noise_on_the_same_tree() -> None:
    paper, exact = as_json(*PLAN), as_json(*PLAN, "--calibration=gdp")
    assert as_json(*PLAN, "--calibration=exact") == exact
    assert as_json(*PLAN, "--calibration=paper") == paper
    assert exact["tree_depth"] == paper["tree_depth"]
    assert exact["node_noise_std"] < paper["node_noise_std"]
    assert "exact Gaussian accounting" in exact["guarantee"]["argument"]
    assert as_json(*TIGHT, "--calibration=exact") == as_json(*TIGHT)
    played = as_json(*SIMULATE, "--calibration=exact")
    assert played["guarantee"]["argument"] == exact["guarantee"]["argument"]


@pytest.mark.parametrize("options", [["--variant=tight"], ["--calibration=exact"]])
def test_several_rounds_of_one_person_and_leaving_out_are_promised(options: list[str]) -> None:
    for command in (PLAN, SIMULATE):
        found = as_json(*command, *options, "--contributions=3", "--neighbours=add-remove")
        assert found["guarantee"]["contributions_per_user"] == 3
        assert found["guarantee"]["neighbours"] == "add-remove"
        assert "leaving out one person's rows in up to 3 rounds" in found["guarantee"]["text"]


def test_more_rounds_of_one_person_need_more_noise() -> None:
    once, thrice = as_json(*TIGHT), as_json(*TIGHT, "--contributions=3")
    assert thrice["gram_noise_std"] == pytest.approx(3 * once["gram_noise_std"])
    assert as_json(*TIGHT, "--neighbours=add-remove")["gram_noise_std"] < once["gram_noise_std"]


def test_variants_are_listed() -> None:
    assert set(as_json("variants")) == set(VARIANTS)


@pytest.mark.parametrize("command", [PLAN, SIMULATE, ["variants"]], ids=lambda c: c[0])
def test_without_json_there_is_a_table(command: list[str]) -> None:
    outcome = CliRunner().invoke(app, command)
    assert outcome.exit_code == 0
    assert "gaussian" in outcome.stdout
    assert "┃" in outcome.stdout


BAD = {
    "epsilon zero": ([*PLAN, "--epsilon=0"], "epsilon"),
    "epsilon missing": (PLAN[:4], "epsilon"),
    "delta missing": (PLAN[:5], "delta"),
    "epsilon tiny": ([*PLAN, "--variant=wishart", "--epsilon=1e-200"], "epsilon"),
    "delta tiny": ([*PLAN, "--delta=1e-320"], "delta"),
    "horizon enormous": ([*PLAN, "--horizon=1e308"], "horizon"),
    "epsilon bad but unused": ([*PLAN, "--variant=nonprivate", "--epsilon=-1"], "epsilon"),
    "rho-min negative": ([*PLAN, "--rho-min=-5"], "rho_min"),
    "rho-min negative, no tree": ([*PLAN, "--variant=nonprivate", "--rho-min=-5"], "rho_min"),
    "too much memory": ([*SIMULATE, "--dim=1e5", "--actions=1e12"], "memory"),
    "negative first seed": ([*SIMULATE, "--first-seed=-3"], "first-seed"),
    "delta one": ([*PLAN, "--delta=1"], "delta"),
    "alpha one": ([*PLAN, "--failure-prob=1"], "failure_prob"),
    "horizon beyond counting": ([*TIGHT, "--horizon=2e19"], "horizon"),
    "horizon zero": ([*PLAN, "--horizon=0"], "horizon"),
    "horizon not whole": ([*PLAN, "--horizon=1.5"], "--horizon"),
    "horizon infinite": ([*PLAN, "--horizon=inf"], "--horizon"),
    "horizon no number": ([*PLAN, "--horizon=soon"], "--horizon"),
    "dim zero": ([*PLAN, "--dim=0"], "dim"),
    "gap zero": ([*PLAN, "--gap=0"], "gap"),
    "unknown variant": ([*PLAN, "--variant=best"], "variant"),
    "tree where there is none": ([*PLAN, "--variant=nonprivate", "--tree=covering"], "tree"),
    "unknown tree": ([*PLAN, "--tree=oak"], "tree"),
    "wishart covering": ([*PLAN, "--variant=wishart", "--tree=covering"], "tree"),
    "shift twice": ([*PLAN, "--shift=1", "--rho-min=1"], "shift"),
    "shift too small": ([*PLAN, "--shift=0"], "shift"),
    "unknown option": ([*PLAN, "--horizn=5"], "--horizn"),
    "unknown command": (["plna"], "plna"),
    "missing option": (["plan"], "--horizon"),
    "open horizon, paper's noise": ([*PLAN, "--horizon=none"], "horizon"),
    "open horizon, no noise": ([*PLAN, "--variant=nonprivate", "--horizon=none"], "horizon"),
    "open horizon, no rounds": ([*SIMULATE, "--variant=tight", "--horizon=none"], "rounds"),
    "unknown calibration": ([*PLAN, "--calibration=guess"], "calibration"),
    "paper's calibration of ours": ([*TIGHT, "--calibration=paper"], "calibration"),
    "wishart exactly": ([*PLAN, "--variant=wishart", "--calibration=exact"], "calibration"),
    "exactly nothing": ([*PLAN, "--variant=nonprivate", "--calibration=exact"], "calibration"),
    "no contributions": ([*TIGHT, "--contributions=0"], "contributions"),
    "half a contribution": ([*TIGHT, "--contributions=1.5"], "--contributions"),
    "contributions, paper's noise": ([*PLAN, "--contributions=2"], "privacy"),
    "unknown neighbours": ([*TIGHT, "--neighbours=next-door"], "neighbours"),
    "neighbours, paper's noise": ([*PLAN, "--neighbours=add-remove"], "privacy"),
    "shift of ours": ([*TIGHT, "--shift=5"], "shift"),
    "rho-min of ours": ([*TIGHT, "--rho-min=5"], "rho_min"),
    "unknown env": ([*SIMULATE, "--env=moon"], "env"),
    "unknown policy": ([*SIMULATE, "--policy=luck"], "policy"),
    "unknown rewards": ([*SIMULATE, "--rewards=gold"], "rewards"),
    "too many rounds": ([*SIMULATE, "--rounds=1001"], "rounds"),
    "no seeds": ([*SIMULATE, "--seeds=0"], "seeds"),
    "no workers": ([*SIMULATE, "--jobs=0"], "jobs"),
    "no actions": ([*SIMULATE, "--actions=0"], "actions"),
    "gap too wide": ([*SIMULATE, "--gap=1.5"], "gap"),
    "negative optimism": ([*SIMULATE, "--optimism=-1"], "optimism"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_on_standard_error(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from discreet.cli import main  # noqa: PLC0415  # the function, not the module

    arguments, named = BAD[case]
    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("discreet: ")
    assert printed.err.count("\n") == 1
    assert named in printed.err


def test_the_command_is_a_process_like_any_other() -> None:
    done = discreet("plan", "--variant=gaussian", "--horizon=0", "--dim=5")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "discreet: horizon: is 0; give a whole number of at least 1\n"
    assert discreet("--version").stdout == f"discreet {__version__}\n"
    helped = discreet()
    assert helped.returncode == 0
    assert "simulate" in helped.stdout


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    done = discreet("demo", "--out", str(blocked / "demo"))
    assert done.returncode == 2
    assert done.stderr.strip().count("\n") == 0


def test_importing_the_package_is_light() -> None:
    # Neither the compiler nor the plotting library may load before they are needed.
    script = "import sys, discreet; print({'numba', 'matplotlib', 'scipy'} & set(sys.modules))"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
