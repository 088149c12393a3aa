"""Whatever the order of calls: a learner in memory or in files, restarted or not."""

import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from discreet import Problem, load
from discreet.errors import (
    DecisionClosedError,
    GivenUpWarning,
    HorizonReachedError,
    UnknownDecisionError,
)
from discreet.mechanism.schedules import hybrid
from discreet.mechanism.variants import VARIANTS, Named, named
from helpers import EARLY, died, learner_for

ROWS = [*VARIANTS.values(), EARLY, named("tight").with_schedule(hybrid(start=3, ratio=0.4))]


class AnyOrderOfCalls(RuleBasedStateMachine):
    """The counts add up, and neither a restart nor a crash changes anything."""

    folder: Path
    started = 0

    @initialize(variant=st.sampled_from(ROWS))
    def start(self, variant: Named) -> None:
        problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        self.learner = learner_for(variant, problem, horizon=40, max_pending=5)
        self.source = self.learner._curator._held.sums._source
        AnyOrderOfCalls.started += 1
        self.path = self.folder / str(self.started)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.rewarded = self.given_up = 0

    @rule(angle=st.floats(0, 6.28))
    def choose(self, angle: float) -> None:
        actions = 0.99 * np.array([[math.cos(angle), math.sin(angle)], [0.0, 0.5]])
        if len(self.ids) == 40:
            with pytest.raises(HorizonReachedError):
                self.learner.choose(actions)
            return
        with nullcontext() if len(self.open) < 5 else pytest.warns(GivenUpWarning):
            made = self.learner.choose(actions)
        self.given_up += len(self.open) == 5
        self.open = [*self.open, made.id][-5:]
        self.ids.append(made.id)

    @rule(pick=st.integers(0, 50), reward=st.floats(-1, 1))
    def learn(self, pick: int, reward: float) -> None:
        if pick >= len(self.ids):
            with pytest.raises(UnknownDecisionError):
                self.learner.learn(f"00000000-{pick}", reward)
        elif self.ids[pick] in self.open:
            self.learner.learn(self.ids[pick], reward)
            self.open.remove(self.ids[pick])
            self.rewarded += 1
        else:
            with pytest.raises(DecisionClosedError):
                self.learner.learn(self.ids[pick], reward)

    @rule()
    def forget(self) -> None:
        if self.open:
            self.learner.forget(self.open.pop(len(self.open) // 2))

    @rule()
    def store(self) -> None:
        self.learner.save(self.path)

    @rule(tidily=st.booleans())
    def restart(self, *, tidily: bool) -> None:
        if self.learner.path is None:
            return
        release = self.learner.release
        if tidily:
            self.learner.close()
        else:
            died(self.learner)
        self.learner = load(self.path, noise_source=self.source)
        np.testing.assert_array_equal(self.learner.release.gram, release.gram)
        np.testing.assert_array_equal(self.learner.release.moment, release.moment)

    @invariant()
    def counts_add_up(self) -> None:
        assert self.learner.rounds == len(self.ids)
        assert self.learner.rows == self.rewarded
        times = self.learner.mechanism.schedule.times(self.rewarded)
        release = self.learner.release
        assert (release.number, release.rows) == (len(times), max(times, default=0))
        assert self.learner.waiting == len(self.open)
        assert self.learner.given_up == self.given_up
        assert len(self.learner.ledger) == release.number


def test_any_order_of_calls_is_safe(tmp_path: Path) -> None:
    AnyOrderOfCalls.folder = tmp_path
    machine = AnyOrderOfCalls.TestCase()
    machine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
    machine.runTest()
