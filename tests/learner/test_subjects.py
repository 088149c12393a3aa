"""People who come more than once: how many of their rows count, and how they are forgotten."""

import contextlib
import enum
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from discreet import (
    Budget,
    Forgotten,
    Guarantee,
    LinUCB,
    NoiseBounds,
    Privacy,
    Problem,
    Supplied,
    load,
)
from discreet.curator import (
    _changes,
    _forgetting,
    _observed,
    _progress,
    _releases,
    _state,
    _storage,
    _subjects,
    curator,
    sums,
)
from discreet.curator._changes import PERSON
from discreet.curator._subjects import unpack
from discreet.curator.store import Place, _sqlite_database, sqlite
from discreet.errors import (
    BudgetExceededError,
    DiscreetError,
    ParameterError,
    ShapeError,
    StateExistsError,
    StoreError,
)
from discreet.mechanism.schedules import batches
from discreet.mechanism.variants import named
from helpers import (
    EARLY,
    TARGET,
    assert_same,
    crashed,
    died,
    full_disk,
    seeded,
    unit_rows,
    watched,
    whole_state,
)
from interrupting import Interrupting

BATCHED = named("tight").with_schedule(batches(4))
KINDS: dict[str, tuple[Any, str, int]] = {  # with how many rounds of one person
    "windows": (EARLY, "exact", 2),
    "windows, float": (EARLY, "float", 2),
    "tight": (BATCHED, "exact", 3),
    "tight, float": (BATCHED, "float", 2),
    "tight, a tree": (BATCHED.with_tree("pan-private"), "exact", 2),
    "gaussian": (named("gaussian"), "exact", 1),
    "wishart": (named("wishart"), "float", 1),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
batched_kinds = [kind for kind in KINDS if kind not in {"gaussian", "wishart"}]
each_batched_kind = pytest.mark.parametrize("kind", batched_kinds)
NAME = "somebody@example.org"
ZERO = np.zeros((1, 3))


def learner(kind: str, problem: Problem, path: Place | None = None, **more: object) -> LinUCB:
    variant, noise, rounds = KINDS[kind]
    return LinUCB(
        problem,
        horizon=400,
        privacy=replace(TARGET, contributions_per_user=rounds),
        variant=variant,
        noise=noise,
        noise_source=seeded(4),
        path=path,
        **more,
    )


def log(rows: int, people: int) -> tuple[np.ndarray, np.ndarray, list[str | None]]:
    """Rows of a few people, and of some that nobody knows."""
    rng = np.random.default_rng(7)
    whose = [f"person {one}" if one else None for one in rng.integers(0, people, rows).tolist()]
    return unit_rows(rng, rows, 3), rng.uniform(-1, 1, rows), whose


def capped(
    actions: np.ndarray, rewards: np.ndarray, whose: list[str | None], cap: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """What should count of a log, and how many rows do not."""
    seen: Counter[str] = Counter()
    actions, rewards, over = actions.copy(), rewards.copy(), 0
    for at, who in enumerate(whose):
        if who is not None:
            seen[who] += 1
            if seen[who] > cap:
                actions[at], rewards[at] = 0.0, 0.0
                over += 1
    return actions, rewards, over


def assert_shown_alike(found: LinUCB, other: LinUCB, *, exactly: bool = True) -> None:
    """The last releases of two learners; rounding depends on the order of sums."""
    assert (found.rounds, found.rows) == (other.rounds, other.rows)
    assert found.release.number == other.release.number
    for name in ("gram", "moment"):
        one, two = getattr(found.release, name), getattr(other.release, name)
        tolerance = 0 if exactly else 1e-12 * (1 + abs(two).max())
        np.testing.assert_allclose(one, two, rtol=0, atol=tolerance)


# The cap


@each_kind
@pytest.mark.parametrize("way", ["choose", "learn", "many", "learn many", "observe", "parts"])
def test_no_more_rows_of_a_person_count_than_were_paid_for(
    kind: str, way: str, problem: Problem
) -> None:
    actions, rewards, whose = log(80, 9)
    bandit, expected = learner(kind, problem), learner(kind, problem)
    if way == "choose":
        made = [bandit.choose(one[None], subject=who) for one, who in zip(actions, whose)]  # noqa: B905
        for decision, reward in zip(made, rewards, strict=True):
            bandit.learn(decision, reward)
    elif way == "learn":
        for one, reward, who in zip(actions, rewards, whose, strict=True):
            bandit.learn(bandit.choose(one[None]).id, reward, subject=who)
    elif way == "many":
        made = bandit.choose_many(actions[:, None], subjects=whose)
        bandit.learn_many(zip(made, rewards, strict=True))
    elif way == "learn many":
        made = bandit.choose_many(actions[:, None])
        bandit.learn_many(zip(made, rewards, strict=True), subjects=whose)
    else:
        for part in np.array_split(np.arange(80), 1 if way == "observe" else 7):
            subjects = [whose[at] for at in part]
            bandit.observe(actions[part], rewards[part], subjects=subjects)
    *counting, over = capped(actions, rewards, whose, KINDS[kind][2])
    expected.observe(*counting)
    assert_shown_alike(bandit, expected, exactly=KINDS[kind][1] == "exact")
    assert bandit.release.number > 3
    assert (bandit.over_cap, expected.over_cap) == (over, 0)
    assert over > 20


def test_releases_are_the_sums_of_the_rows_that_count(problem: Problem) -> None:
    # What is added to these sums is known, so that a learner without the cap would be found out.
    def known(_: int) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(3), np.zeros(3)

    promise = Guarantee(epsilon=1.0, delta=1e-6, argument="a test", contributions_per_user=2)
    bounds = NoiseBounds(rho_min=1.0, rho_max=2.0, gamma=1.0)
    supplied = Supplied(perturbations=known, bounds=bounds, guarantee=promise)
    bandit = LinUCB(problem, horizon=80, variant=supplied, noise="float")
    actions, rewards, whose = log(80, 9)
    bandit.observe(actions, rewards, subjects=whose)
    counting, values, _ = capped(actions, rewards, whose, 2)
    np.testing.assert_allclose(bandit.release.gram, counting.T @ counting + np.eye(3), atol=1e-12)
    np.testing.assert_allclose(bandit.release.moment, counting.T @ values, atol=1e-12)
    assert abs(bandit.release.gram - actions.T @ actions).max() > 1


def test_where_nothing_is_promised_nothing_is_capped(problem: Problem) -> None:
    bandit = LinUCB(problem, horizon=80, variant="nonprivate")
    actions, rewards, _ = log(80, 9)
    bandit.observe(actions, rewards, subjects=[NAME] * 80)
    np.testing.assert_allclose(bandit.release.moment, actions.T @ rewards, atol=1e-12)
    assert bandit.over_cap == 0
    assert bandit.forget_subject(NAME) == Forgotten(0, 0, 80)


@pytest.mark.parametrize(
    ("protects", "said"),
    [
        ("rows", "the noise in it goes on protecting them."),
        ("rewards", "goes on protecting their rewards, while their actions are public."),
        ("nothing", "this learner promises no privacy."),
    ],
)
def test_an_erasure_says_what_noise_goes_on_protecting(
    problem: Problem, protects: str, said: str
) -> None:
    variant, privacy = "nonprivate", None
    if protects != "nothing":
        variant, privacy = "tight", Privacy(epsilon=1, delta=1e-6, protects=protects)
    bandit = LinUCB(problem, horizon=500, variant=variant, privacy=privacy)
    actions, rewards, _ = log(80, 9)
    bandit.observe(actions, rewards, subjects=[NAME, *range(79)])
    assert bandit.release.rows > 0
    found = bandit.forget_subject(NAME)
    assert (found.released, found.protects) == (1, protects)
    assert str(found).endswith(said)


@each_kind
def test_counts_go_on_after_restarts_and_crashes(
    kind: str, problem: Problem, place: Place, tmp_path: Path
) -> None:
    actions, rewards, whose = log(60, 7)
    bandit, kept = learner(kind, problem, place), learner(kind, problem)
    waits = [one.choose(np.eye(3), subject="waits") for one in (bandit, kept)]
    source = bandit._curator._held.sums._source
    for turn, part in enumerate(np.array_split(np.arange(60), 6)):
        for one in (bandit, kept):
            subjects = [whose[at] for at in part]
            one.observe(actions[part], rewards[part], subjects=subjects)
        assert_same(crashed(bandit, tmp_path / str(turn), noise_source=seeded(1)), bandit)
        if turn % 3 == 1:
            bandit.save()
            assert_same(crashed(bandit, tmp_path / f"{turn} saved", noise_source=seeded(1)), bandit)
        elif turn % 3 == 2:
            died(bandit) if turn == 2 else bandit.close()
            bandit = load(place, noise_source=source)
    for one, decision in zip((bandit, kept), waits, strict=True):
        one.learn(decision.id, 0.5)
        one.observe(np.eye(3), [0.1, 0.2, 0.3], subjects=["waits"] * 3)
    assert_shown_alike(bandit, kept)
    assert bandit.over_cap == kept.over_cap > 10
    records_of = [
        sorted(unpack(one) for one in each._curator._held.book.counts.values())
        for each in (bandit, kept)
    ]
    assert records_of[0] == records_of[1]


def test_a_decision_counts_when_it_has_its_reward(problem: Problem) -> None:
    bandit, expected = learner("tight", problem), learner("tight", problem)
    cap = KINDS["tight"][2]
    made = bandit.choose_many([np.eye(3)[:1]] * 8, subjects=[NAME] * 8)
    bandit.forget(made[0])  # has used nothing up
    bandit.learn_many([(one, 0.5) for one in made[1:]])
    expected.observe(np.repeat(np.eye(3)[:1], cap, axis=0), [0.5] * cap)
    expected.observe(np.zeros((7 - cap, 3)), [0.0] * (7 - cap))
    np.testing.assert_array_equal(bandit.release.gram, expected.release.gram)
    assert bandit.over_cap == 7 - cap


def test_a_store_writes_only_counts_that_have_changed(problem: Problem, place: Place) -> None:
    bandit = learner("tight", problem, place)
    actions, rewards, _ = log(120, 2)
    bandit.observe(actions[:100], rewards[:100], subjects=range(100))
    bandit.save()
    store = watched(bandit)
    bandit.observe(actions[:3], rewards[:3], subjects=[5, 5, 200])
    bandit.save()
    bandit.observe(actions[:3], rewards[:3], subjects=[5, 5, 5])  # beyond the cap but for one
    bandit.observe(actions[:3], rewards[:3], subjects=[5, 5, 5])
    written = [[item[1] for item in change.puts if item[0] == PERSON] for change in store.commits]
    assert written == [[5, 100], [], [], []]


def test_many_threads_cannot_go_beyond_the_cap(problem: Problem, place: Place) -> None:
    bandit = learner("tight", problem, place)
    cap, errors = KINDS["tight"][2], []

    def work(number: int) -> None:
        try:
            for turn in range(10):
                who = f"person {(number + turn) % 3}"
                one = bandit.choose(np.eye(3), subject=who)
                bandit.learn(one, 0.5)
                if turn == 5 and number == 0:
                    bandit.forget_subject("person 1")
        except BaseException as error:  # noqa: BLE001  # the test reports it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert bandit.rows == 60
    counts = [unpack(one)[1] for one in bandit._curator._held.book.counts.values()]
    assert counts == [cap] * 3
    # Decisions of somebody who was forgotten are zeros too, and not beyond any cap.
    assert 60 - 3 * cap - 6 <= bandit.over_cap <= 60 - 3 * cap
    before = whole_state(bandit)
    died(bandit)
    assert whole_state(load(place, noise_source=seeded(1))) == before


# Who somebody is


def test_an_id_is_the_same_in_any_type(problem: Problem) -> None:
    bandit = LinUCB(problem, horizon=99, privacy=TARGET)
    same = [7, "7", b"7", np.int64(7), np.str_("7"), np.bytes_(b"7")]
    bandit.observe(np.zeros((6, 3)), [0.0] * 6, subjects=same)
    assert bandit.over_cap == 5
    bandit.observe(np.zeros((3, 3)), [0.0] * 3, subjects=np.array([7, 8, 8]))
    assert bandit.over_cap == 7
    bandit.observe(np.zeros((2, 3)), [0.0] * 2, subjects=np.array(["é", "\ud800"]))
    assert bandit.over_cap == 7


class Name(str, enum.Enum):  # noqa: UP042  # a StrEnum prints as its text; this does not
    """Equal to a text, and prints as something else."""

    SEVEN = "7"


class Raw(bytes):
    """The same of bytes."""

    def __bytes__(self) -> bytes:
        return b"something else"


@pytest.mark.parametrize("same", [Name.SEVEN, Raw(b"7")], ids=["text", "bytes"])
def test_an_id_is_what_it_is_and_not_what_it_prints_as(same: str | bytes, problem: Problem) -> None:
    bandit = LinUCB(problem, horizon=99, privacy=TARGET)
    bandit.observe(np.zeros((2, 3)), [0.0] * 2, subjects=["7", same])
    assert bandit.over_cap == 1
    assert bandit.forget_subject(same).in_batch == 1


BAD = [1.5, True, None, ["x"], {"x": 1}, float("nan"), np.float64(1.0), "", b"", object()]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_what_is_no_id_is_refused(bad: object, problem: Problem) -> None:
    bandit = LinUCB(problem, horizon=9, privacy=TARGET)
    one = bandit.choose(np.eye(3))
    calls = [lambda: bandit.forget_subject(bad)]
    if bad is not None:
        calls += [
            lambda: bandit.choose(np.eye(3), subject=bad),
            lambda: bandit.choose_many([np.eye(3)], subjects=[bad]),
            lambda: bandit.learn(one, 0.5, subject=bad),
            lambda: bandit.learn_many([(one, 0.5)], subjects=[bad]),
            lambda: bandit.observe(np.eye(3)[:1], [0.5], subjects=[bad]),
        ]
    for call in calls:
        with pytest.raises(ParameterError, match="subject: is "):
            call()
    assert (bandit.rounds, bandit.rows, bandit.waiting) == (1, 0, 1)


@pytest.mark.parametrize(
    ("subjects", "kind"),
    [
        (["x"], ShapeError),
        ("xyz", ParameterError),
        ({}, ParameterError),
        ({"x", "y", "z"}, ParameterError),  # in no order
    ],
)
def test_there_is_one_subject_for_each_row(
    subjects: object, kind: type[DiscreetError], problem: Problem
) -> None:
    bandit = LinUCB(problem, horizon=9, privacy=TARGET)
    with pytest.raises(kind, match="subjects: "):
        bandit.observe(np.eye(3), [0.1, 0.2, 0.3], subjects=subjects)
    assert bandit.rounds == 0


def test_a_decision_is_for_one_person(problem: Problem) -> None:
    bandit = LinUCB(problem, horizon=9, privacy=TARGET)
    one = bandit.choose(np.eye(3), subject=NAME)
    with pytest.raises(ParameterError) as caught:
        bandit.learn(one, 0.5, subject="somebody else")
    assert caught.value.parameter == "subject"
    assert "some" not in str(caught.value)
    assert bandit.waiting == 1
    bandit.learn(one, 0.5, subject=NAME)
    assert bandit.rows == 1


def all_bytes(place: Place) -> bytes:
    """Everything in the files of a store, or in its tables."""
    if isinstance(place, Path):
        return b"".join(file.read_bytes() for file in sorted(place.parent.iterdir()))
    address, _, name = place.partition("#")
    with psycopg.connect(address) as database:
        found = database.execute(
            "SELECT value FROM discreet_item WHERE name = %s UNION ALL "
            "SELECT line FROM discreet_ledger WHERE name = %s",
            (name, name),
        ).fetchall()
    return b"".join(bytes(one[0]) for one in found)


def test_an_id_is_nowhere_to_be_found(problem: Problem, place: Place) -> None:
    number = 7_316_509_244
    bandit = learner("tight", problem, place)
    waits = bandit.choose(np.eye(3), subject=NAME)
    bandit.observe(np.eye(3), [0.1, 0.2, 0.3], subjects=[NAME, number, NAME])
    shown = [
        bandit,
        bandit._curator,
        bandit._curator._held,
        bandit._curator._held.book,
        waits,
        bandit.release,
        bandit.ledger,
    ]
    shown += [bandit.ledger.card, bandit.forget_subject(number)]
    seen = [all_bytes(place)]
    bandit.save()
    seen.append(all_bytes(place))
    key = bandit._curator._held.book.key
    digest = bandit._curator._held.book.digest(NAME)
    bandit.close()
    seen.append(all_bytes(place))
    text = "".join(f"{one!r}{one}" for one in shown)
    for secret in (NAME, str(number), key.hex(), digest.hex(), str(key), str(digest)):
        assert secret not in text
    for data in seen:
        assert digest in data  # the search finds what is there
        assert NAME.encode() not in data
        assert NAME.encode().hex().encode() not in data
        assert str(number).encode() not in data
        assert number.to_bytes(8, "little") not in data
    ledger = load(place, noise_source=seeded(1)).ledger
    for secret in (key.hex(), digest.hex(), "over"):
        assert secret not in b"".join(entry.line() for entry in ledger.entries).decode()


def test_two_learners_have_different_keys(problem: Problem) -> None:
    books = [LinUCB(problem, horizon=9, privacy=TARGET)._curator._held.book for _ in range(2)]
    assert books[0].digest(NAME) != books[1].digest(NAME)
    assert books[0].digest(NAME) == books[0].digest(NAME)
    assert len(books[0].key) == 32


# Forgetting


@each_kind
@pytest.mark.parametrize("stored", [True, False])
def test_a_forgotten_person_leaves_rows_of_zeros(
    kind: str, problem: Problem, tmp_path: Path, *, stored: bool
) -> None:
    """Whatever is released afterwards is what it would be if they had brought zeros, to the bit."""
    rng = np.random.default_rng(3)
    path = tmp_path / "state" if stored else None
    bandit, expected = learner(kind, problem, path), learner(kind, problem)
    batched = kind in batched_kinds
    for turn in range(40):
        actions, reward = unit_rows(rng, 1, 3), float(rng.uniform(-1, 1))
        mine = turn % 5 == 3
        name = f"person {turn}" if turn % 2 or mine else None
        one = bandit.choose(actions, subject=name)
        released = bandit.mechanism.schedule.times(bandit.rows + 1)[-1:] == [bandit.rows + 1]
        bandit.learn(one, reward)
        gone = mine and batched and not released
        # The other learner has the same people, but for those who are forgotten.
        other = expected.choose(actions * (not gone), subject=None if gone else name)
        expected.learn(other, 0.0 if gone else reward)
        if mine:
            found = bandit.forget_subject(name)
            assert found == Forgotten(0, int(gone), int(not gone))
            assert bandit.forget_subject(name) == Forgotten(0, 0, int(not gone))
            assert ("taken back" in str(found)) == (not gone)
        assert_shown_alike(bandit, expected)
    assert bandit.release.number > 5
    if stored:
        bandit.close()
        assert_shown_alike(load(tmp_path / "state", noise_source=seeded(1)), expected)


@each_batched_kind
def test_a_reward_for_somebody_forgotten_keeps_its_place(
    kind: str, problem: Problem, place: Place
) -> None:
    bandit, expected = learner(kind, problem, place), learner(kind, problem)
    made = bandit.choose_many([np.eye(3)] * 3, subjects=[NAME, None, NAME])
    others = expected.choose_many([ZERO, np.eye(3)[made[1].index][None], ZERO])
    assert bandit.forget_subject(NAME) == Forgotten(2, 0, 0)
    assert bandit.waiting == 3
    assert bandit.forget_subject(NAME) == Forgotten(0, 0, 0)
    source = bandit._curator._held.sums._source
    died(bandit)
    bandit = load(place, noise_source=source)
    with pytest.raises(DiscreetError, match="reward: "):
        bandit.learn(made[0].id, 7.0)  # the same rewards are refused as ever
    for one, other in zip(made, others, strict=True):
        bandit.learn(one.id, 0.75)
        expected.learn(other, 0.75)
    actions, rewards, _ = log(20, 2)
    for each in (bandit, expected):
        each.observe(actions, rewards)
    assert_shown_alike(bandit, expected)
    assert bandit.over_cap == 0


def test_what_a_forgotten_person_has_used_stays_used(problem: Problem) -> None:
    bandit = learner("tight", problem)  # three rounds of one person, releases of four rows
    bandit.observe(np.eye(3)[:2], [0.5, 0.5], subjects=[NAME] * 2)
    assert bandit.forget_subject(NAME) == Forgotten(0, 2, 0)
    bandit.observe(np.eye(3)[:2], [0.5, 0.5], subjects=[NAME] * 2)
    assert bandit.over_cap == 1
    assert bandit.forget_subject(NAME) == Forgotten(0, 0, 1)
    expected = learner("tight", problem)
    expected.observe(np.vstack([np.zeros((2, 3)), np.eye(3)[:1], ZERO]), [0.0, 0.0, 0.5, 0.0])
    assert_shown_alike(bandit, expected)


def test_nobody_knows_a_stranger(problem: Problem, place: Place) -> None:
    bandit = learner("tight", problem, place)
    bandit.observe(np.eye(3), [0.1, 0.2, 0.3])
    before = whole_state(bandit)
    assert bandit.forget_subject("a stranger") == Forgotten(0, 0, 0)
    assert whole_state(bandit) == before


@pytest.mark.parametrize("compact", [True, False])
@each_batched_kind
def test_what_is_forgotten_is_in_no_file(
    kind: str, problem: Problem, tmp_path: Path, *, compact: bool
) -> None:
    (tmp_path / "stored").mkdir()
    place = tmp_path / "stored" / "bandit"
    bandit = learner(kind, problem, place)
    while bandit.rows + 3 >= bandit._curator._held.sums.position.due:
        bandit.observe(ZERO, [0.0])
    mark = np.array([[0.123456789, -0.1987654321, 0.0123454321]])
    other = np.array([[0.3123456789, 0.1987654321, 0.0123454321]])
    bandit.observe(other, [0.25], subjects=["another"])
    bandit.observe(mark, [0.71234567], subjects=[NAME])
    bandit.choose(mark / 2, subject=NAME)
    if compact:
        bandit.save()
    traces = [mark.tobytes(), np.float64(0.71234567).tobytes(), (mark / 2).tobytes()]
    assert all(trace in all_bytes(place) for trace in traces)
    assert bandit.forget_subject(NAME) == Forgotten(1, 1, 0)
    assert not any(trace in all_bytes(place) for trace in traces)
    assert other.tobytes() in all_bytes(place)
    bandit.close()
    assert not any(trace in all_bytes(place) for trace in traces)


def test_rows_in_a_release_are_not_stored_one_by_one_after_it(
    problem: Problem, tmp_path: Path
) -> None:
    (tmp_path / "stored").mkdir()
    place = tmp_path / "stored" / "bandit"
    bandit = learner("tight", problem, place)
    mark = np.array([[0.123456789, -0.1987654321, 0.0123454321]])
    bandit.observe(mark, [0.5], subjects=[NAME])
    bandit.save()  # it is held
    assert mark.tobytes() in all_bytes(place)
    bandit.observe(np.zeros((3, 3)), [0.0] * 3)
    assert bandit.release.number == 1
    assert bandit.forget_subject(NAME) == Forgotten(0, 0, 1)
    assert mark.tobytes() not in all_bytes(place)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_store_that_fails_forgets_as_a_whole_or_not_at_all(
    when: str, problem: Problem, place: Place
) -> None:
    bandit = learner("tight", problem, place)
    bandit.observe(np.eye(3)[:2], [0.5, 0.25], subjects=[NAME, None])
    bandit.choose(np.eye(3), subject=NAME)
    bandit.save()
    before = whole_state(bandit)
    store = watched(bandit)
    calls = [0]

    def fails(kind: str) -> None:
        calls[0] += kind == "commit"
        if calls[0] == 2:  # the first stores the sums
            full_disk("commit")(kind)

    setattr(store, when, fails)
    with contextlib.ExitStack() as refused:
        if when == "before":
            refused.enter_context(pytest.raises(StoreError))
        assert bandit.forget_subject(NAME) == Forgotten(1, 1, 0)
    setattr(store, when, lambda _: None)
    assert calls[0] == 2
    if when == "before":
        assert whole_state(bandit) == before
        assert bandit.forget_subject(NAME) == Forgotten(1, 1, 0)
    assert bandit.forget_subject(NAME) == Forgotten(0, 0, 0)
    after = whole_state(bandit)
    died(bandit)
    assert whole_state(load(place, noise_source=seeded(1))) == after


def test_a_reward_that_comes_during_the_forgetting_is_not_used(
    problem: Problem, place: Place
) -> None:
    bandit, expected = learner("tight", problem, place), learner("tight", problem)
    made = bandit.choose(np.eye(3), subject=NAME)
    bandit.save()
    store = watched(bandit)
    threads: list[threading.Thread] = []

    def meanwhile(_: str) -> None:
        if any(type(change) is _forgetting.Forget for change in bandit._curator._progress.queue):
            store.before = lambda _: None
            threads.append(threading.Thread(target=bandit.learn, args=(made, 0.5)))
            threads[0].start()
            while len(bandit._curator._progress.queue) < 2:
                time.sleep(0.001)

    store.before = meanwhile
    assert bandit.forget_subject(NAME) == Forgotten(1, 0, 0)
    threads[0].join(60)
    actions, rewards, _ = log(20, 2)
    bandit.observe(actions, rewards)
    expected.observe(np.vstack([ZERO, actions]), [0.0, *rewards])
    assert_shown_alike(bandit, expected)


@each_batched_kind
def test_an_interrupt_right_after_a_release_adds_no_row_twice(
    kind: str, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit, expected = learner(kind, problem), learner(kind, problem)
    actions, rewards, _ = log(40, 2)
    held = type(bandit._curator._held.sums)
    original, late = held._add, [0]

    def interrupted(one: Any, *arguments: Any) -> None:  # noqa: ANN401
        original(one, *arguments)
        if arguments[-1]:
            late[0] += 1
            if late[0] == 2:
                raise KeyboardInterrupt

    for each in (expected, bandit):
        if each is bandit:
            monkeypatch.setattr(held, "_add", interrupted)
        for at in range(40):
            with contextlib.suppress(KeyboardInterrupt):
                each.learn(each.choose(actions[at][None], subject=at), rewards[at])
    assert late[0] > 3
    assert_shown_alike(bandit, expected)


CALLS = {
    "forget_subject": lambda one, _: one.forget_subject(NAME),
    "learn": lambda one, ids: one.learn(ids[0], 0.5),
    "learn_many": lambda one, ids: one.learn_many([(ids[0], 0.5), (ids[2], 0.1)]),
    "observe": lambda one, _: one.observe(
        np.eye(3)[[0, 1, 2, 0, 1, 2]] / 2, [0.5] * 6, subjects=[NAME, 1, 1, 2, NAME, None]
    ),
}


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_at_any_place_leaves_all_of_it_or_nothing(
    call: str, problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stored: bool
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    quick = tuple(setting.replace("=FULL", "=OFF") for setting in _sqlite_database.SETTINGS)
    monkeypatch.setattr(_sqlite_database, "SETTINGS", quick)
    monkeypatch.setattr(secrets, "token_bytes", bytes)  # the same key each time

    def started(path: Path | None) -> tuple[LinUCB, list[str]]:
        bandit = learner("tight", problem, path)
        bandit.observe(np.eye(3)[:2], [0.5, 0.25], subjects=[NAME, "other"])
        made = [bandit.choose(np.eye(3)[:1], subject=who).id for who in (NAME, None, "other")]
        return bandit, made

    def state(bandit: LinUCB) -> dict[tuple[int, int], bytes]:
        """All that is held; ids and seals are different each time."""
        assert bandit.rounds  # whatever was left is settled
        return {key: value[16:] for key, value in whole_state(bandit).items() if key[0] > 0}

    bandit, ids = started(None)
    before = state(bandit)
    CALLS[call](bandit, ids)
    after = state(bandit)
    assert before != after
    seen, at, step = set(), 1, 7 if stored else 3
    while True:
        path = tmp_path / f"{at}" if stored else None
        bandit, ids = started(path)
        with contextlib.suppress(KeyboardInterrupt), Interrupting(at, MODULES) as interrupting:
            CALLS[call](bandit, ids)
        now = state(bandit)
        seals = {key for key in now if key[0] == _changes.HEAD}
        plain = [{key: one[key] for key in one if key not in seals} for one in (now, before, after)]
        assert plain[0] in plain[1:]
        seen.add(plain[0] == plain[2])
        bandit.learn(bandit.choose(np.eye(3), subject="new"), 0.5)
        if path is not None:
            held = whole_state(bandit)
            died(bandit)
            assert whole_state(load(path, noise_source=seeded(1))) == held
        if not interrupting.happened:
            break
        at += step
    assert seen == {True, False}
    assert at > 50


MODULES = (
    _subjects,
    _progress,
    _releases,
    _state,
    curator,
    _changes,
    _forgetting,
    _observed,
    _storage,
    sums,
    sqlite,
    _sqlite_database,
)


# One budget for several learners


def test_a_learner_that_a_budget_has_no_room_for_is_not_made(
    problem: Problem, tmp_path: Path
) -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    path = tmp_path / "first"
    with LinUCB(problem, horizon=99, privacy=TARGET, path=path, budget=budget) as first:
        name = first.ledger.learner
    assert [item.id for item in budget.items] == [name]
    with pytest.raises(BudgetExceededError):
        LinUCB(problem, horizon=99, privacy=TARGET, path=tmp_path / "other", budget=budget)
    with pytest.raises(BudgetExceededError):
        LinUCB.from_mechanism(first.mechanism, path=tmp_path / "other", budget=budget)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["first", "first.ledger"]
    for _ in range(2):
        with load(path, budget=budget) as again:
            assert again.ledger.learner == name
    assert len(budget.items) == 1


def test_a_learner_that_cannot_be_stored_has_spent_nothing(
    problem: Problem, tmp_path: Path
) -> None:
    budget = Budget(epsilon=2.0, delta=1e-6)
    (tmp_path / "taken").write_text("something else")
    with pytest.raises(StateExistsError):
        LinUCB(problem, horizon=99, privacy=TARGET, path=tmp_path / "taken", budget=budget)
    with pytest.raises(ParameterError, match="path"):
        LinUCB(problem, horizon=99, privacy=TARGET, path=tmp_path / "no" / "x", budget=budget)
    with pytest.raises(ParameterError, match="promises no privacy"):
        LinUCB(problem, horizon=99, privacy=TARGET, noise_source=seeded(1), budget=budget)
    with pytest.raises(ParameterError, match="budget: is of type float"):
        LinUCB(problem, horizon=99, privacy=TARGET, budget=2.0)  # type: ignore[arg-type]
    assert budget.items == ()
    LinUCB(problem, horizon=99, privacy=TARGET, budget=budget)
    assert len(budget.items) == 1


def test_a_loaded_learner_that_a_budget_has_no_room_for_is_closed_again(
    problem: Problem, tmp_path: Path
) -> None:
    path = tmp_path / "state"
    LinUCB(problem, horizon=99, privacy=TARGET, path=path).close()
    small = Budget(epsilon=0.5, delta=1e-6)
    with pytest.raises(BudgetExceededError):
        load(path, budget=small)
    assert small.items == ()
    with load(path, budget=Budget(epsilon=1.0, delta=1e-6)) as bandit:
        assert bandit.rounds == 0


def test_what_may_have_been_stored_stays_spent(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = Budget(epsilon=2.0, delta=1e-6)

    def broken(*_: object) -> None:
        raise StoreError("path", "has no room")

    monkeypatch.setattr(sqlite, "create", broken)
    with pytest.raises(StoreError):
        LinUCB(problem, horizon=99, privacy=TARGET, path=tmp_path / "state", budget=budget)
    assert len(budget.items) == 1


def test_a_privacy_target_for_people_who_come_several_times(problem: Problem) -> None:
    privacy = Privacy(epsilon=1.0, delta=1e-6, contributions_per_user=5)
    bandit = LinUCB(problem, horizon=99, privacy=privacy)
    assert bandit._curator._held.book.cap == 5


def test_a_row_that_is_released_while_its_person_is_forgotten_leaves_the_store(
    problem: Problem, tmp_path: Path
) -> None:
    path = tmp_path / "learner"
    bandit = LinUCB(problem, horizon=10_000, privacy=TARGET, variant=EARLY, path=path)
    row = np.array([[0.12345, 0.54321, 0.0]])
    bandit.observe(row, [0.75], subjects=[NAME])
    inside = bandit._curator
    led, due = inside._led, inside._held.sums.position.due

    def interleaved(work: Callable[[], None]) -> None:
        """Another thread's rows make a release between the two halves of forgetting."""
        led(work)
        rest = due - bandit.rows
        if rest > 0:
            other = threading.Thread(
                target=bandit.observe, args=(np.zeros((rest, 3)), [0.0] * rest)
            )
            other.start()
            other.join()

    inside._led = interleaved
    try:
        found = bandit.forget_subject(NAME)
    finally:
        del inside._led
    assert found == Forgotten(0, 0, 1)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert row[0, :1].tobytes() not in stored
    bandit.close()
