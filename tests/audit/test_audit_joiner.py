"""The joiner, step by step: what the argument in docs/privacy.md says of it, without any noise.

What `discreet audit --attack joiner` finds in the real one is here too; what it finds in broken
ones is in test_audit_broken.py.
"""

import builtins

import broken_mechanisms as broken
import numpy as np
import pytest

from discreet import LinUCB, audit
from discreet.audit import _joiner as joined
from discreet.audit import _streams as streams
from discreet.audit._joiner import _Plan, _World
from discreet.service import _events as events

SURE = 1 - 1e-8  # bounds are wrong with this probability: see test_audit_attacks.py
TIMES = (4, 8, 12)
LAST = 6


class Recorded:
    """A joiner and a learner that writes down what it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, plan: _Plan) -> None:
        self.actions: list[np.ndarray] = []
        self.rewards: list[float] = []
        self.subjects: list[object] = []
        learner = broken.made(broken.sound(12, noise="exact"))()
        observe = learner.observe

        def writing(actions: np.ndarray, rewards: list[float], *, subjects: list[object]) -> None:
            self.actions += list(actions)
            self.rewards += rewards
            self.subjects += subjects
            observe(actions, rewards, subjects=subjects)

        monkeypatch.setattr(learner, "observe", writing)
        self.world = _World(learner, plan)
        self.looks = [self._step(step) for step in range(LAST + 1)]

    def _step(self, step: int) -> object:
        self.world.now = float(step)
        if step < 3:
            self.world.rank(("before", "person", "after")[step])
        if step:
            self.world.react()
        return self.world.look()


def plan(row: streams.PlayedRow, *, prompt: bool) -> _Plan:
    bound = broken.PROBLEM.reward_bound
    return _Plan(times=TIMES, first=4, own=3, counted=1, row=row, default=bound, prompt=prompt)


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> tuple[Recorded, Recorded]:
    longest = streams.longest(broken.PROBLEM)
    away = streams.zeros(broken.PROBLEM.dim)
    return (
        Recorded(monkeypatch, plan(longest, prompt=True)),
        Recorded(monkeypatch, plan(away, prompt=False)),
    )


def test_times_and_counts_are_the_same_whatever_a_person_does(
    worlds: tuple[Recorded, Recorded],
) -> None:
    one, other = worlds
    assert one.looks == other.looks
    assert one.looks[-1][0] == (12, 12)


def test_an_event_is_closed_at_its_deadline_and_not_before(
    worlds: tuple[Recorded, Recorded],
) -> None:
    for world in worlds:
        closed = [look[0][1] for look in world.looks]
        # Events come at 0, 1 and 2 and wait for 2.5, whether they are rewarded or not.
        assert closed == [0, 0, 0, 4, 7, 12, 12]


def test_whether_an_event_is_activated_does_not_decide_which_of_a_persons_events_count(
    worlds: tuple[Recorded, Recorded],
) -> None:
    one, other = worlds
    assert one.subjects == other.subjects
    assert [subject is not None for subject in one.subjects] == 4 * [False] + 3 * [True] + 5 * [
        False
    ]


def test_rows_that_are_not_activated_are_zeros(worlds: tuple[Recorded, Recorded]) -> None:
    one, other = worlds
    assert [bool(row.any()) for row in one.actions] == 4 * [False] + 3 * [True] + 5 * [False]
    assert not any(row.any() for row in other.actions)
    assert one.world.learner.over_cap == 2


def test_rewards_that_are_late_or_out_of_bounds_are_as_none_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = streams.longest(broken.PROBLEM)
    found = Recorded(monkeypatch, plan(row, prompt=False))
    # Each event of the person gets 2, which is out of bounds, and -1, which is late; the default
    # is 1.
    assert [one.any() for one in found.actions][4:7] == [True, False, False]
    assert found.rewards[4] == 1.0


def test_a_reward_in_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    row = streams.longest(broken.PROBLEM)._replace(reward=-0.25)
    found = Recorded(monkeypatch, plan(row, prompt=True))
    assert found.rewards[4:7] == [-0.25, -0.25, -0.25]


def test_what_was_learned_from_is_removed(worlds: tuple[Recorded, Recorded]) -> None:
    for world in worlds:
        left = world.world.connection.execute("SELECT COUNT(*) FROM service_pending")
        assert left == [(0,)]


def test_the_attack_finds_no_more_than_is_claimed_and_nothing_in_times_and_counts() -> None:
    make = broken.made(broken.sound_windows("exact"))
    found = audit.run(make, attacks=["joiner"], trials=400, confidence=SURE)
    finding = found.finding("joiner")
    assert finding.verdict == "consistent"
    assert "times and counts show 0," in finding.note


def test_a_person_may_have_several_rounds_or_stay_away() -> None:
    for neighbours, contributions in (("add-remove", 1), ("replacement", 2)):
        privacy = type(broken.TARGET)(
            epsilon=1.0, delta=1e-6, contributions_per_user=contributions, neighbours=neighbours
        )
        config = audit.Config(problem=broken.PROBLEM, privacy=privacy, variant=broken.QUICK)
        found = audit.run(config, attacks=["joiner"], trials=200, confidence=SURE)
        assert found.finding("joiner").verdict == "consistent"


def test_the_attack_says_which_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "discreet.audit" and rest[2] == ("_joiner",):
            raise ModuleNotFoundError("No module named 'msgspec'", name="msgspec")
        return importing(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    found = audit.run(broken.joined(), attacks=["joiner"], trials=100)
    assert found.finding("joiner").verdict == "inapplicable"
    assert "discreet[serve]" in found.finding("joiner").note


def test_a_learner_that_is_not_linucb_is_no_matter_for_the_joiner() -> None:
    class Other:
        def __init__(self) -> None:
            self.inner: LinUCB = broken.joined()()

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    found = audit.run(Other, attacks=["joiner"], trials=100)
    assert found.finding("joiner").verdict == "inapplicable"


def test_the_worlds_use_what_the_service_uses() -> None:
    assert joined.events is events
    assert joined.Joiner.__module__ == "discreet.service._joiner"
