"""Save files: open, versioned, atomic, and never trusted."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import LinUCB, Privacy, Problem, load
from discreet.curator import storage
from discreet.errors import CorruptFileError, FileVersionError, StateFileError
from discreet.schedules import batches
from discreet.variants import named

PROBLEM = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)


# Five rows: a release after each, or after the second and the fourth.
FORMS = {"gaussian": named("gaussian"), "tight": named("tight").with_schedule(batches(2))}


def saved(path: Path, form: str = "tight") -> Path:
    target = Privacy(epsilon=1, delta=1e-6)
    learner = LinUCB(PROBLEM, horizon=20, privacy=target, variant=FORMS[form])
    for _ in range(5):
        learner.learn(learner.choose(np.eye(2)), 1)
    learner.choose(np.eye(2))
    learner.save(path)
    return path


def resigned(path: Path, change: dict[str, object]) -> None:
    """Alter the body and give it a valid digest again."""
    document = json.loads(path.read_bytes())
    for dotted, value in change.items():
        *parents, last = dotted.split(".")
        place = document["body"]
        for parent in parents:
            place = place[parent]
        if value is None:
            del place[last]
        else:
            place[last] = value
    storage.write(path, document["body"])


def test_a_file_is_plain_json_for_its_owner_only(tmp_path: Path) -> None:
    path = saved(tmp_path / "bandit.discreet")
    document = json.loads(path.read_bytes())
    assert document["format"] == "discreet-learner"
    assert document["version"] == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_temporary_file_stays_behind(tmp_path: Path) -> None:
    saved(tmp_path / "bandit")
    assert os.listdir(tmp_path) == ["bandit"]  # noqa: PTH208  # the names are what is tested


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "bandit")
    before = path.read_bytes()

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        saved(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["bandit"]  # noqa: PTH208


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"format": "discreet-learner"}',
        b"[" * 99999,
    ],
)
def test_what_is_not_a_save_file_is_called_corrupt(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match="path: "):
        load(path)


def test_a_truncated_file_is_corrupt(tmp_path: Path) -> None:
    path = saved(tmp_path / "file")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptFileError):
        load(path)


def test_an_altered_file_is_corrupt(tmp_path: Path) -> None:
    path = saved(tmp_path / "file")
    path.write_text(path.read_text().replace('"rows": 5', '"rows": 4'))
    with pytest.raises(CorruptFileError, match="truncated or altered"):
        load(path)


def test_a_file_from_the_future_says_so(tmp_path: Path) -> None:
    path = saved(tmp_path / "file")
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "version": 2, "body": "unknown"}))
    with pytest.raises(FileVersionError, match=r"format version 2 .* update discreet"):
        load(path)


def test_a_missing_file_is_an_ordinary_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": None},
        {"mechanism.setting.horizon": 0},
        {"mechanism.setting.problem.dim": 10**9},
        {"mechanism.setting.problem.action_norm": 0.5},
        {"mechanism.setting.horizon": 10**18},
        {"mechanism.noise.family": "uniform"},
        {"mechanism.noise.std": 0.0},
        {"mechanism.noise.moment_std": -1.0},
        {"mechanism.noise": []},
        {"mechanism.confidence": None},
        {"mechanism.confidence.kind": "guess"},
        {"mechanism.schedule": {}},
        {"mechanism.schedule.start": 0},
        {"mechanism.schedule.start": 4},
        {"mechanism.schedule.step": 4},
        {"mechanism.strategy": []},
        {"mechanism.strategy.kind": "luck"},
        {"policy.optimism": "much"},
        {"policy.rule": "luck"},
        {"policy": 3},
        {"on_violation": "ignore"},
        {"max_pending": 0},
        {"state.sessions": None},
        {"state.sessions": [["a"]]},
        {"state.rounds": 4},
        {"state.rounds": 21},
        {"state.rounds": True},
        {"state.rows": 6},
        {"state.rows": -1},
        {"state.waiting": ["a-5", "b-5"]},
        {"state.waiting": []},
        {"state.waiting": 5},
        {"state.actions": {"shape": [2, 2], "float64": "AAAA"}},
        {"state.released": None},
        {"state.released": -1},
        {"state.released": 3},
        {"state.released": 6},
        {"state.releases": None},
        {"state.releases": 1},
        {"state.releases": 3},
        {"state.sums": None},
        {"state.sums.nodes": {"shape": [1, 5], "float64": ""}},
        {"state.sums.idle": None},
        {"state.sums.totals": {"shape": [0, 5], "float64": ""}},
        {"state.sums.batch": {"shape": [0], "float64": ""}},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", FORMS)
def test_a_body_that_does_not_fit_together_is_corrupt(
    tmp_path: Path, form: str, change: dict[str, object]
) -> None:
    path = saved(tmp_path / "file", form)
    resigned(path, change)
    with pytest.raises(CorruptFileError):
        load(path)


@pytest.mark.parametrize(
    ("form", "change"),
    [
        ("gaussian", {"mechanism.confidence.bounds.rho_min": -1.0}),
        ("gaussian", {"mechanism.confidence.shift": "much"}),
        ("gaussian", {"mechanism.strategy": {"kind": "buffered"}}),
        ("tight", {"mechanism.confidence.prior": -1.0}),
        ("tight", {"mechanism.strategy": {"kind": "tree"}}),
        ("tight", {"mechanism.strategy.exponent": 1.0}),
        ("tight", {"mechanism.strategy": {"kind": "optimised", "weights": [1.0]}}),
        ("tight", {"mechanism.schedule.batch": 3}),
        ("tight", {"state.released": 2, "state.releases": 1}),
        ("tight", {"state.rows": 3}),
    ],
)
def test_a_mechanism_that_does_not_fit_its_sums_is_corrupt(
    tmp_path: Path, form: str, change: dict[str, object]
) -> None:
    path = saved(tmp_path / "file", form)
    resigned(path, change)
    with pytest.raises(CorruptFileError):
        load(path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["nodes", "totals", "batch"])
def test_a_sum_that_is_not_finite_is_corrupt(tmp_path: Path, form: str, name: str) -> None:
    path = saved(tmp_path / "file", form)
    body = json.loads(path.read_bytes())["body"]
    shape = body["state"]["sums"][name]["shape"]
    resigned(path, {f"state.sums.{name}": storage.encode(np.full(shape, np.nan))})
    with pytest.raises(CorruptFileError):
        load(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_no_mutation_of_a_file_escapes_as_another_error(
    tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "file"
    if not path.exists():
        saved(path)
        (tmp_path / "original").write_bytes(path.read_bytes())
    content = bytearray((tmp_path / "original").read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path.write_bytes(content)
    try:
        load(path)
    except StateFileError:
        return
    original = json.loads((tmp_path / "original").read_bytes())
    assert json.loads(bytes(content)) == original  # only a change without meaning may pass


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_arrays_survive_exactly(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    again = storage.decode(json.loads(json.dumps(storage.encode(array))))
    np.testing.assert_array_equal(again, array)
    assert again.tobytes() == array.tobytes()
