"""Save files: open, versioned, atomic, and never trusted."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import LinUCB, Privacy, Problem, load
from discreet.curator import journal, storage
from discreet.curator.journal import Header
from discreet.curator.keeping import KEPT, companion
from discreet.errors import (
    CorruptFileError,
    DecisionClosedError,
    FileVersionError,
    MissingFileError,
    StateFileError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import named

PROBLEM = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)


# Five rows: a release after each, or after the second and the fourth.
EVERY_ROW, EVERY_OTHER = named("gaussian"), named("tight").with_schedule(batches(2))
FORMS = {
    "gaussian": (EVERY_ROW, "exact"),
    "tight": (EVERY_OTHER, "exact"),
    "gaussian, float": (EVERY_ROW, "float"),
    "tight, float": (EVERY_OTHER, "float"),
}
each_form = pytest.mark.parametrize("form", FORMS)


def saved(path: Path, form: str = "tight") -> Path:
    """A learner's files, with an empty journal."""
    variant, noise = FORMS[form]
    target = Privacy(epsilon=1, delta=1e-6)
    learner = LinUCB(PROBLEM, horizon=20, privacy=target, variant=variant, noise=noise)
    for _ in range(5):
        learner.learn(learner.choose(np.eye(2)), 1)
    learner.choose(np.eye(2))
    learner.save(path)
    learner.close()
    return path


def resigned(path: Path, change: dict[str, object]) -> None:
    """Alter the body, and give it and the journal that goes on from it valid digests again."""
    body = storage.read(path)
    for dotted, value in change.items():
        *parents, last = dotted.split(".")
        place = body
        for parent in parents:
            place = place[parent]
        if value is None:
            del place[last]
        else:
            place[last] = value
    path.write_bytes(storage.render(body))
    kept = body[KEPT]
    header = Header(
        generation=kept["generation"], snapshot=storage.digest(body), ledger=kept["ledger"]
    )
    companion(path, "journal").write_bytes(header.line())


def test_a_file_is_plain_json(tmp_path: Path) -> None:
    path = saved(tmp_path / "bandit.discreet")
    document = json.loads(path.read_bytes())
    assert document["format"] == "discreet-learner"
    assert document["version"] == 1


@each_form
def test_a_body_that_is_written_again_is_as_good_as_before(tmp_path: Path, form: str) -> None:
    # So what the tests below find is what they changed.
    path = saved(tmp_path / "file", form)
    resigned(path, {"max_pending": 9})
    learner = load(path)
    assert (learner.rounds, learner.rows, learner.waiting) == (6, 5, 1)


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


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nowhere does not exist; give the path"):
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
        {"mechanism.noise.gram_steps": 0},
        {"mechanism.noise.grid": []},
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
@each_form
def test_a_body_that_does_not_fit_together_is_corrupt(
    tmp_path: Path, form: str, change: dict[str, object]
) -> None:
    path = saved(tmp_path / "file", form)
    resigned(path, change)
    with pytest.raises(CorruptFileError, match="settings that do not fit together"):
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
        ("tight", {"mechanism.noise.moment_steps": 1.5}),
        ("tight", {"mechanism.noise.grid.action_exponent": 1.5}),
        ("gaussian", {"mechanism.noise.grid.reward_exponent": 301}),
    ],
)
def test_a_mechanism_that_does_not_fit_its_sums_is_corrupt(
    tmp_path: Path, form: str, change: dict[str, object]
) -> None:
    path = saved(tmp_path / "file", form)
    resigned(path, change)
    with pytest.raises(CorruptFileError, match="settings that do not fit together"):
        load(path)


SUMS = {
    "not finite": lambda entry: np.full(entry["shape"], np.nan),
    "too large": lambda entry: np.full(entry["shape"], 2**63 - 1),
    "of another kind": lambda entry: np.zeros(
        entry["shape"], dtype=np.int64 if "float64" in entry else np.float64
    ),
}


@each_form
@pytest.mark.parametrize("name", ["nodes", "totals", "batch"])
@pytest.mark.parametrize("wrong", SUMS)
def test_a_sum_that_cannot_be_one_is_corrupt(
    tmp_path: Path, form: str, name: str, wrong: str
) -> None:
    path = saved(tmp_path / "file", form)
    entry = storage.read(path)["state"]["sums"][name]
    resigned(path, {f"state.sums.{name}": storage.encode(SUMS[wrong](entry))})
    with pytest.raises(CorruptFileError, match="settings that do not fit together"):
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


def going_on(path: Path, records: list[dict]) -> None:
    """Give a snapshot a journal with these records, and valid digests."""
    file = companion(path, "journal")
    found = journal.parse(file.read_bytes())
    lines, chain = [found.header.line()], found.chain
    for record in records:
        line, chain = journal.record(chain, record)
        lines.append(line)
    file.write_bytes(b"".join(lines))


def opened(decision: str, action: object = (1.0, 0.0)) -> dict:
    return {"open": decision, "action": storage.encode(np.array(action))}


def learned(decision: str, reward: object = 1.0, noise: object = None) -> dict:
    nothing = np.empty((0, 5), dtype=np.int64) if noise is None else noise
    return {"learn": decision, "reward": reward, "noise": storage.encode(nothing)}


def test_a_journal_is_played_again(tmp_path: Path) -> None:
    path = saved(tmp_path / "file", "tight")
    going_on(path, [opened("a-6"), {"forget": "a-6"}, opened("b-7")])
    learner = load(path)
    assert (learner.rounds, learner.rows, learner.waiting) == (8, 5, 2)
    learner.learn("b-7", 1)
    with pytest.raises(DecisionClosedError):
        learner.learn("a-6", 1)
    assert learner.release.number == 3


@pytest.mark.parametrize(
    "records",
    [
        [{}],
        [{"open": "a-6"}],
        [opened("a-5")],
        [opened("a-7")],
        [opened("a")],
        [opened("a-6"), opened("a-6")],
        [opened("a-6", (1.0, 1.0))],
        [opened("a-6", (1.0, 0.0, 0.0))],
        [opened("a-6", (1, 0))],
        [opened("a-6", ())],
        [opened(f"a-{number}") for number in range(6, 21)],
        [{"forget": "a-6"}],
        [{"forget": []}],
        [learned("a-6")],
        [learned([])],
        [opened("a-6"), learned("a-6")],  # this row makes a release
        [opened("a-6"), learned("a-6", noise=np.zeros((1, 5)))],
        [opened("a-6"), learned("a-6", noise=np.zeros((1, 4), dtype=np.int64))],
        [opened("a-6"), learned("a-6", noise=np.zeros((2, 5), dtype=np.int64))],
        [opened("a-6"), learned("a-6", 2.0, np.zeros((1, 5), dtype=np.int64))],
        [opened("a-6"), learned("a-6", "1", np.zeros((1, 5), dtype=np.int64))],
        [opened("a-6"), {"learn": "a-6", "reward": 1.0}],
    ],
    ids=lambda records: "-".join("".join(list(record)[:1]) for record in records)[:40],
)
def test_a_journal_that_does_not_fit_its_snapshot_is_corrupt(
    tmp_path: Path, records: list[dict]
) -> None:
    path = saved(tmp_path / "file", "tight")
    going_on(path, records)
    with pytest.raises(CorruptFileError, match="settings that do not fit together"):
        load(path)
    going_on(path, [])
    assert load(path).rows == 5  # nothing was changed


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_arrays_survive_exactly(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    again = storage.decode(json.loads(json.dumps(storage.encode(array))))
    np.testing.assert_array_equal(again, array)
    assert again.tobytes() == array.tobytes()
