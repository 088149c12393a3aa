"""The command line: its JSON, its tables, and one line for every error."""

import inspect
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet import __version__
from discreet.baselines import LINEAR_BASELINES
from discreet.cli import app
from discreet.errors import ParameterError
from discreet.learner import LinUCB
from discreet.mechanism.variants import VARIANTS
from discreet.privacy import Privacy
from discreet.problem import Problem, Setting
from discreet.release.policies import PosteriorUCB

DEFAULT = ["plan", "--horizon=1e6", "--dim=3", "--epsilon=1", "--delta=1e-6"]
TIGHT = [*DEFAULT, "--variant=tight"]
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
    assert set(regret) == {"mean", "stderr", "worst", "per_seed", "curve"}
    assert regret["worst"] == max(regret["per_seed"])
    assert len(regret["per_seed"]) == 2
    assert regret["curve"][-1] == [300, pytest.approx(regret["mean"])]
    assert found["rounds_per_second"] > 0
    assert found["guarantee"]["epsilon"] == (1.0 if variant.private else None)


def regret_of(*options: str) -> tuple[float, ...]:
    return tuple(as_json(*SIMULATE, *options)["pseudo_regret"]["per_seed"])


@pytest.mark.parametrize("policy", ["posterior", "ucb", "thompson", "greedy"])
def test_simulate_knows_every_policy(policy: str) -> None:
    played = as_json(*SIMULATE, f"--policy={policy}")["policy"]
    greedy = {"name": "ucb", "optimism": 0.0}
    assert played["name"] == ("ucb" if policy == "greedy" else policy)
    assert (played == greedy) == (policy == "greedy")


def test_simulate_plays_each_environment_with_each_policy_and_no_two_alike() -> None:
    environments = ["sphere", "fixed", "basis", "clusters"]
    policies = ["posterior", "ucb", "thompson", "greedy"]
    found = {
        regret_of(f"--env={environment}", f"--policy={policy}", "--actions=4")
        for environment in environments
        for policy in policies
    }
    assert len(found) == len(environments) * len(policies)
    assert all(min(regrets) > 0 for regrets in found)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("nonprivate", "--rewards=gaussian"),
        ("nonprivate", "--shift=2.5"),
        ("gaussian", "--tree=covering"),
        ("gaussian", "--rho-min=1e5"),
    ],
)
def test_simulate_heeds_an_option_for_rewards_trees_and_shifts(name: str, option: str) -> None:
    plain = f"--variant={name}"
    assert regret_of(plain) == regret_of(plain)
    assert regret_of(plain, option) != regret_of(plain)


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


FEW = ["simulate", "--horizon=300", "--epsilon=1", "--delta=1e-6", "--seeds=1", "--jobs=1"]


def test_the_default_is_what_the_learner_does() -> None:
    default = inspect.signature(LinUCB).parameters["variant"].default
    assert as_json(*DEFAULT)["variant"] == default == "windows"
    played = as_json(*FEW)
    assert played["variant"] == default
    problem = Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1)
    learner = LinUCB(problem, horizon=300, privacy=Privacy(epsilon=1, delta=1e-6))
    assert played["policy"] == {"name": "posterior", **asdict(learner.policy)}
    assert isinstance(learner.policy, PosteriorUCB)


def test_each_variant_plays_by_its_own_policy(variant) -> None:  # noqa: ANN001
    found = as_json(*SIMULATE, f"--variant={variant.name}")
    named = {"windows": "posterior", "nonprivate": "posterior"}.get(variant.name, "ucb")
    assert found["policy"]["name"] == named
    same = as_json(*SIMULATE, f"--variant={variant.name}", f"--policy={named}")
    assert same["pseudo_regret"] == found["pseudo_regret"]


def test_the_numbers_of_a_policy_are_options() -> None:
    ours = [*SIMULATE, "--variant=nonprivate"]
    numbers = {"deviations": 0.5, "growth": 0.2, "dither": 0.1, "uniform": 0.25}
    options = [f"--{name}={number}" for name, number in numbers.items()]
    found = as_json(*ours, *options)
    assert found["policy"] == {"name": "posterior", **numbers}
    assert found["pseudo_regret"] != as_json(*ours)["pseudo_regret"]
    for policy in ("ucb", "thompson"):
        found = as_json(*ours, f"--policy={policy}", "--optimism=0.5")
        assert found["policy"] == {"name": policy, "optimism": 0.5}
    assert as_json(*ours, "--policy=greedy")["policy"] == {"name": "ucb", "optimism": 0.0}


def test_choices_that_are_all_uniform_learn_nothing() -> None:
    # A uniform choice on the sphere costs about 0.75 a round, and a learner's soon far less.
    found = as_json(*SIMULATE, "--variant=nonprivate", "--uniform=1")
    assert 0.6 * 1000 < found["pseudo_regret"]["mean"] < 0.9 * 1000


@pytest.mark.parametrize("plan", [DEFAULT, TIGHT], ids=["windows", "tight"])
def test_a_plan_of_ours_has_its_own_keys_in_json_and_table(plan: list[str]) -> None:
    found = as_json(*plan)
    keys = {"releases", "gdp_mu", "column_norm", "gram_noise_std", "moment_noise_std"}
    keys |= {"first_noise_scale", "last_noise_scale", "half_gain_rows"}
    bounds = {"regret_bound", "paper_regret_bound"}
    keys |= {"first_release_rows"} if plan == DEFAULT else bounds
    assert set(found) == keys | {"variant", "guarantee"}
    table = CliRunner().invoke(app, plan).stdout
    assert all(key in table for key in keys)


def test_a_plan_of_windows_has_the_figures_of_its_mechanism() -> None:
    found = as_json(*DEFAULT)
    problem = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
    target = Privacy(epsilon=1, delta=1e-6)
    mechanism = VARIANTS["windows"].mechanism(Setting.over(problem, 10**6), target)
    assert found["first_release_rows"] == mechanism.schedule.after(0)
    assert found["column_norm"] == 1.0
    assert found["gram_noise_std"] == mechanism.noise.std
    assert found["releases"] == mechanism.schedule.count(10**6)


def test_a_horizon_too_short_to_beat_chance_is_told() -> None:
    found = as_json(*DEFAULT)
    needed, first = found["half_gain_rows"], found["first_release_rows"]
    assert first < needed
    for horizon, told in ((first, True), (needed - 1, True), (needed, False)):
        outcome = CliRunner().invoke(app, [*DEFAULT, f"--horizon={horizon}"])
        sentence = f"within {horizon:,} rounds this learner will hardly choose better than chance"
        assert (sentence in outcome.stderr) == told
        assert f"about {needed:,} rows" in " ".join(outcome.stdout.split())
    assert as_json(*DEFAULT, "--best=0.3")["half_gain_rows"] > needed
    assert as_json(*DEFAULT, "--actions=100")["half_gain_rows"] != needed
    assert "half_gain_rows" not in as_json(*PLAN)  # it plays for the worst case


def test_a_horizon_before_the_first_release_is_told() -> None:
    first = as_json(*DEFAULT)["first_release_rows"]
    for command in (DEFAULT, FEW):
        short = CliRunner().invoke(app, [*command, f"--horizon={first - 1}", "--dim=3", "--json"])
        assert short.exit_code == 0
        assert "first release" in short.stderr
        assert json.loads(short.stdout)["variant"] == "windows"
        enough = CliRunner().invoke(app, [*command, f"--horizon={first}", "--dim=3"])
        assert "first release" not in enough.stderr


def test_a_plan_with_a_gap_has_our_bound_beside_the_papers() -> None:
    found = as_json(*TIGHT, "--gap=0.1")
    bounds = ["regret_bound", "gap_regret_bound", "paper_regret_bound", "paper_gap_regret_bound"]
    table = CliRunner().invoke(app, [*TIGHT, "--gap=0.1"])
    assert all(found[bound] > 0 and bound in table.stdout for bound in bounds)
    assert not table.stderr
    gaussian = as_json(*PLAN, "--gap=0.1")
    for ours, papers in zip(bounds[:2], bounds[2:], strict=True):
        assert found[papers] == gaussian[ours] > found[ours]


@pytest.mark.parametrize(
    "plan", [DEFAULT, [*TIGHT, "--horizon=none"]], ids=["windows", "tight without a horizon"]
)
def test_a_plan_without_a_theorem_says_that_it_does_not_use_the_gap(plan: list[str]) -> None:
    outcome = CliRunner().invoke(app, [*plan, "--gap=0.1", "--json"])
    assert "--gap is not used" in outcome.stderr
    assert json.loads(outcome.stdout) == as_json(*plan)


@pytest.mark.parametrize("name", ["windows", "tight"])
def test_a_horizon_may_be_open(name: str) -> None:
    row, problem = VARIANTS[name], Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
    mechanism = row.mechanism(Setting.over(problem, None), Privacy(epsilon=1, delta=1e-6))
    own = f"--variant={name}"
    assert as_json(*DEFAULT, own, "--horizon=none")["releases"] == mechanism.releases
    played = as_json(*SIMULATE, own, "--horizon=None", "--rounds=300")
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


@pytest.mark.parametrize(
    "options", [["--variant=windows"], ["--variant=tight"], ["--calibration=exact"]]
)
def test_several_rounds_of_one_person_and_leaving_out_are_promised(options: list[str]) -> None:
    for command in (PLAN, SIMULATE):
        found = as_json(*command, *options, "--contributions=3", "--neighbours=add-remove")
        assert found["guarantee"]["contributions_per_user"] == 3
        assert found["guarantee"]["neighbours"] == "add-remove"
        assert "leaving out one person's rows in up to 3 rounds" in found["guarantee"]["text"]


@pytest.mark.parametrize("plan", [DEFAULT, TIGHT], ids=["windows", "tight"])
def test_more_rounds_of_one_person_need_more_noise(plan: list[str]) -> None:
    once, thrice = as_json(*plan), as_json(*plan, "--contributions=3")
    assert thrice["gram_noise_std"] == pytest.approx(3 * once["gram_noise_std"])
    assert as_json(*plan, "--neighbours=add-remove")["gram_noise_std"] < once["gram_noise_std"]


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
    "unknown to protect": ([*TIGHT, "--protects=contexts"], "protects"),
    "rewards, paper's noise": ([*PLAN, "--protects=rewards"], "protects"),
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
    "optimism of a posterior": ([*FEW, "--optimism=1"], "optimism"),
    "optimism of the greedy rule": ([*FEW, "--policy=greedy", "--optimism=1"], "optimism"),
    "deviations of a confidence set": ([*SIMULATE, "--deviations=1"], "deviations"),
    "dither of a draw": ([*FEW, "--policy=thompson", "--dither=1"], "dither"),
    "negative deviations": ([*FEW, "--deviations=-1"], "deviations"),
    "negative dither": ([*FEW, "--dither=-1"], "dither"),
    "more than all choices": ([*FEW, "--uniform=1.5"], "uniform"),
    "posterior of Wishart noise": (
        [*SIMULATE, "--variant=wishart", "--policy=posterior"],
        "variant",
    ),
    "tree of windows": ([*DEFAULT, "--tree=covering"], "tree"),
    "shift of windows": ([*DEFAULT, "--shift=5"], "shift"),
    "one feature in clusters": ([*FEW, "--env=clusters", "--dim=1"], "dim"),
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*TIGHT, "--contributions=0"], "--contributions: is 0; give a whole number of at least 1"),
        ([*FEW, "--uniform=2"], "uniform: is 2; give a number from 0 to 1"),
        ([*TIGHT, "--best=0"], "best: is 0; give a number above 0, at most 1"),
        ([*TIGHT, "--best=2"], "best: is 2; give a number above 0, at most 1"),
        ([*FEW, "--baseline=dp-imed"], "--env: is no multi-armed bandit"),
        ([*TIGHT, "--dim=1e8"], "--dim: would need at least 74,505,806 GiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1],
)
def test_a_message_names_the_option_and_its_range(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from discreet.cli import main  # noqa: PLC0415  # the function, not the module

    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    with pytest.raises(SystemExit):
        main()
    assert message in capsys.readouterr().err


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


def test_a_memory_and_a_world_that_changes_can_be_asked_for() -> None:
    asked = [*FEW, "--rounds=300", "--memory=100"]
    still, flipped = as_json(*asked), as_json(*asked, "--flip=100")
    assert still["memory"] == flipped["memory"] == 100
    assert still["pseudo_regret"]["curve"][0] == flipped["pseudo_regret"]["curve"][0]
    assert still["pseudo_regret"]["mean"] != flipped["pseudo_regret"]["mean"]
    assert as_json(*asked, "--turn=100")["pseudo_regret"]["mean"] > 0
    assert as_json(*FEW)["memory"] is None
    both = CliRunner().invoke(app, [*asked, "--flip=5", "--turn=5"])
    assert both.exit_code != 0


@pytest.mark.parametrize("name", ["windows", "tight"])
def test_rewards_alone_can_be_planned_and_played(name: str) -> None:
    options = ["--horizon=3000", "--dim=3", "--epsilon=1", "--delta=0.1", f"--variant={name}"]
    rows = as_json("plan", *options)
    found = as_json("plan", *options, "--protects=rewards")
    assert found["gram_noise_std"] == 0.0
    assert 0.0 < found["moment_noise_std"] < rows["moment_noise_std"]
    assert found["half_gain_rows"] < rows["half_gain_rows"]
    assert (rows["guarantee"]["protects"], found["guarantee"]["protects"]) == ("rows", "rewards")
    assert "decision sets, actions and which rounds count are public" in found["guarantee"]["text"]
    seeds = ["--seeds=2", "--jobs=1", "--rounds=200", "--protects=rewards"]
    played = as_json("simulate", *options, *seeds)
    assert played["guarantee"]["protects"] == "rewards"
    assert played["pseudo_regret"]["mean"] > 0.0


BASELINE = ["simulate", "--horizon=400", "--dim=3", "--epsilon=1", "--seeds=2", "--jobs=1"]


@pytest.mark.parametrize("name", [*LINEAR_BASELINES, "dp-imed"])
def test_simulate_plays_baselines_and_says_what_they_protect(name: str) -> None:
    delta = [] if name == "dp-imed" else ["--delta=1e-6"]
    found = as_json(*BASELINE, *delta, "--env=basis", f"--baseline={name}", "--rounds=300")
    assert found["baseline"] == name
    assert found["rounds"] == 300
    assert found["seeds"] == len(found["pseudo_regret"]["per_seed"]) == 2
    assert found["protects"] == found["guarantee"]["protects"]
    assert found["trust"] in {"central", "local", "shuffle"}
    assert found["guarantee"]["epsilon"] == 1.0


@pytest.mark.parametrize(
    ("extra", "parameter"),
    [
        (["--baseline=best", "--delta=0.1"], "baseline"),
        (["--baseline=adac-oful"], "delta"),
        (["--baseline=adac-oful", "--delta=0.1", "--policy=ucb"], "policy"),
        (["--baseline=adac-oful", "--delta=0.1", "--variant=tight"], "variant"),
        (["--baseline=adac-oful", "--delta=0.1", "--device=cuda"], "device"),
        (["--baseline=adac-oful", "--delta=0.1", "--rounds=1e15"], "rounds"),
        (["--baseline=ldp-linucb", "--delta=0.1", "--protects=rewards"], "protects"),
        (["--baseline=adac-oful", "--delta=0.1", "--protects=rows"], "protects"),
        (["--baseline=dp-imed", "--env=basis", "--protects=rows"], "protects"),
        (["--baseline=core-set", "--delta=0.1"], "environment"),
        (["--baseline=dp-imed"], "environment"),
    ],
)
def test_a_baseline_that_cannot_be_played_is_refused_by_name(
    extra: list[str], parameter: str
) -> None:
    outcome = CliRunner().invoke(app, [*BASELINE, *extra])
    assert isinstance(outcome.exception, ParameterError)
    assert outcome.exception.parameter == parameter


def test_a_baseline_may_be_asked_for_what_it_protects_and_has_it_by_itself() -> None:
    baseline = [*BASELINE, "--baseline=adac-oful", "--delta=0.1"]
    assert as_json(*baseline)["guarantee"]["protects"] == "rewards"
    assert as_json(*baseline, "--protects=rewards")["guarantee"]["protects"] == "rewards"


def test_a_baseline_is_shown_as_a_table() -> None:
    outcome = CliRunner().invoke(app, [*BASELINE, "--delta=0.1", "--baseline=adac-oful"])
    assert outcome.exit_code == 0
    assert "adac-oful" in outcome.stdout
    assert "decision sets, actions and which rounds count are public" in " ".join(
        outcome.stdout.split()
    )
