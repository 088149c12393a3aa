"""A learner that protects rewards alone: what it shows, stores and says."""

from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import (
    UCB,
    Budget,
    Guarantee,
    LinUCB,
    Privacy,
    Problem,
    Ranker,
    Release,
    Setting,
    privacy_card,
)
from discreet.errors import ParameterError
from discreet.evaluation import PrivateValues
from discreet.mechanism.variants import Tight, Windowed
from discreet.report._card_page import Card
from helpers import EARLY, seeded, unit_rows

PROBLEM = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
TARGET = Privacy(epsilon=1.0, delta=1e-6, protects="rewards")


def learner(
    variant: Windowed | Tight = EARLY, *, noise: str = "exact", seed: int = 1, **more: object
) -> LinUCB:
    privacy = more.pop("privacy", TARGET)
    return LinUCB(
        PROBLEM,
        horizon=400,
        privacy=privacy,
        variant=variant,
        noise=noise,
        noise_source=seeded(seed),
        policy=UCB(),
        **more,
    )


OWN = pytest.mark.parametrize("own", [EARLY, Tight()], ids=["windows", "tight"])
NOISE = pytest.mark.parametrize("noise", ["exact", "float"])


@OWN
@NOISE
def test_the_gram_matrix_of_a_release_is_exact(own: Windowed | Tight, noise: str) -> None:
    rng = np.random.default_rng(2)
    rows, rewards = unit_rows(rng, 120, 3), rng.uniform(-1, 1, 120)
    bandit = learner(own, noise=noise)
    bandit.observe(rows, rewards)
    release = bandit.release
    # How much each row counts is public.
    times = [0]
    while len(times) <= release.number:
        times.append(bandit.mechanism.schedule.after(times[-1]))
    shown = bandit.mechanism.strategy.batch_weights(release.number)[-1]
    weights = np.repeat(shown, np.diff(times))
    known = rows[: release.rows]
    if noise == "exact":
        step = bandit.mechanism.grid.action_step
        known = np.trunc(known / step) * step  # rounded to the grid
    exact = (known * weights[:, None]).T @ known
    np.testing.assert_allclose(release.gram, exact, rtol=0, atol=1e-8)
    moment = known.T @ (weights * rewards[: release.rows])
    assert np.abs(release.moment - moment).min() > 1e-3  # which has noise


@OWN
@NOISE
def test_rewards_do_not_show_in_the_gram_matrix_in_any_bit(
    own: Windowed | Tight, noise: str
) -> None:
    rng = np.random.default_rng(3)
    rows = unit_rows(rng, 90, 3) * (1 + 1e-16)  # some are too long by a trace
    found = []
    for scale in (0.0, 1.0, -1.0):
        bandit = learner(own, noise=noise, on_violation="clip", seed=7)
        bandit.observe(rows, scale * np.full(90, 1 + 1e-16))
        found.append(bandit.release.gram)
    assert bandit.release.number > 0
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@OWN
@NOISE
def test_a_stored_learner_goes_on_as_if_nothing_had_happened(
    own: Windowed | Tight, noise: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    rows, rewards = unit_rows(rng, 200, 3), rng.uniform(-1, 1, 200)
    straight, stopped = (learner(own, noise=noise, seed=9) for _ in range(2))
    straight.observe(rows[:80], rewards[:80])
    stopped.observe(rows[:80], rewards[:80])
    source = stopped._curator._held.sums._source
    stopped.save(tmp_path / "learner")
    stopped.close()
    restored = discreet.load(tmp_path / "learner", noise_source=source)
    assert restored.mechanism == straight.mechanism
    assert restored.guarantee.protects == "rewards"
    straight.observe(rows[80:], rewards[80:])
    restored.observe(rows[80:], rewards[80:])
    assert restored.release.number > 1
    assert np.array_equal(straight.release.gram, restored.release.gram)
    assert np.array_equal(straight.release.moment, restored.release.moment)
    restored.close()


def test_rows_beyond_the_cap_are_zeros_in_both_sums() -> None:
    rows = np.eye(3)[np.arange(40) % 3]
    one, other = learner(), learner()
    for at, row in enumerate(rows):
        seen = np.zeros(3) if at in {3, 7, 11} else row
        one.observe(row[None], [0.5], subjects=["ann" if at in {0, 3, 7, 11} else f"p{at}"])
        other.observe(seen[None], [0.5 if seen.any() else 0.0])
    assert one.over_cap == 3
    assert one.release.number > 0
    assert np.array_equal(one.release.gram, other.release.gram)
    assert np.array_equal(one.release.moment, other.release.moment)


def test_a_release_travels_as_json_and_a_ranker_decides_from_it() -> None:
    bandit = learner()
    bandit.observe(np.eye(3)[np.arange(60) % 3], np.tile([1.0, 0.0, -1.0], 20))
    again = Release.from_json(bandit.release.to_json())
    assert again.mechanism == bandit.mechanism
    assert np.array_equal(again.gram, bandit.release.gram)
    ranker = Ranker(again, policy=UCB())
    assert ranker.guarantee == bandit.guarantee
    assert ranker.choose(np.eye(3)).index == bandit.choose(np.eye(3)).index


@pytest.mark.parametrize("hurt", ["record", "gram_steps"])
def test_a_release_that_says_it_protects_rows_with_an_exact_matrix_is_refused(hurt: str) -> None:
    document = learner().release.to_json()
    if hurt == "record":
        document["mechanism"]["guarantee"]["record"] = "decision set and reward"
    else:
        other = learner(privacy=replace(TARGET, protects="rows")).release.to_json()
        other["mechanism"]["noise"]["gram_steps"] = 0
        document = other
    with pytest.raises(ParameterError, match="document"):
        Release.from_json(document)


def test_the_guarantee_says_what_is_protected_and_what_is_public() -> None:
    bandit = LinUCB(PROBLEM, horizon=100, privacy=TARGET)
    said = str(bandit.guarantee)
    assert said.startswith(
        "(1, 1e-06)-differential privacy: replacing one person's reward in one round multiplies "
        "the probability of anything that is shown, now or later, by at most e^1, up to a "
        "probability of 1e-06; decision sets, actions and which rounds count are public, and may "
        "depend on rewards only through what is shown. Why: Gaussian noise on the sums of action "
        "times reward,"
    )
    assert "one reward's sensitivity" in said
    weaker = Guarantee.meeting(replace(TARGET, neighbours="add-remove"), "a test")
    assert "leaving out one person's rewards in one round" in str(weaker)
    assert "decision sets, actions, which rounds count" in bandit.guarantee._repr_html_()
    rows = LinUCB(PROBLEM, horizon=100, privacy=replace(TARGET, protects="rows"))
    assert "public" not in str(rows.guarantee)
    assert rows.guarantee.protects == "rows"


def test_the_card_and_its_page_say_so() -> None:
    bandit = LinUCB(PROBLEM, horizon=100, privacy=TARGET)
    card = privacy_card(bandit.mechanism)
    assert (card["protects"], card["record"], card["joint"]) == ("rewards", "reward", False)
    assert card["noise"]["std"]["gram"] == card["noise"]["std"]["gram_diagonal"] == 0
    assert card["noise"]["std"]["moment"] > 0
    assert card["mu"] == bandit.mechanism.cost
    page = Card.of(bandit.ledger, name="ledger")
    assert page.mu == bandit.mechanism.cost
    assert any("Rewards alone are protected" in one for one in page.limits())
    assert "the person's reward in one round is what it is" in unescape(page.page().html())


def test_a_private_value_protects_rows_only() -> None:
    with pytest.raises(ParameterError, match=r"^protects: .*a private value protects whole rows"):
        PrivateValues(low=0, high=1, clip=2, privacy=TARGET)


def test_a_budget_for_rows_refuses_what_protects_rewards_alone() -> None:
    budget = Budget(epsilon=4, delta=1e-5)
    with pytest.raises(ParameterError, match=r"protects rewards alone"):
        LinUCB(PROBLEM, horizon=100, privacy=TARGET, budget=budget)
    assert budget.items == ()


def test_a_budget_for_rewards_takes_both_kinds_and_can_be_stored() -> None:
    budget = Budget(epsilon=4, delta=1e-5, protects="rewards")
    target = budget.privacy_for_next(learners=2)
    assert target.protects == "rewards"
    alone = LinUCB(PROBLEM, horizon=100, privacy=target, budget=budget)
    rows = LinUCB(PROBLEM, horizon=100, privacy=replace(target, protects="rows"), budget=budget)
    assert [item.protects for item in budget.items] == ["rewards", "rows"]
    assert budget.guarantee.protects == "rewards"
    assert "decision sets, actions and which rounds count are public" in str(budget.guarantee)
    assert Budget.from_json(budget.to_json()) == budget
    entry = budget.to_json() | {"protects": "rows"}
    with pytest.raises(ParameterError):
        Budget.from_json(entry)
    assert budget.spend(alone.ledger) == budget.items[0]  # the same by its card
    assert budget.spend(rows.ledger) == budget.items[1]


def test_a_budget_from_before_there_was_a_choice_is_for_rows() -> None:
    budget = Budget(epsilon=4, delta=1e-5)
    budget.spend(LinUCB(PROBLEM, horizon=100, privacy=replace(TARGET, protects="rows")))
    entry = budget.to_json()
    del entry["protects"], entry["items"][0]["protects"]
    assert Budget.from_json(entry) == budget


def test_leaving_whole_rows_out_counts_twice_in_a_budget_for_rewards() -> None:
    budget = Budget(epsilon=8, delta=1e-5, neighbours="add-remove", protects="rewards")
    away = Privacy(epsilon=1, delta=1e-6, neighbours="add-remove")
    setting = Setting(problem=PROBLEM, horizon=100)
    rows = EARLY.mechanism(setting, away)
    budget.spend(rows, name="rows")
    assert budget._rule.mu_of(budget.items[0]) == 2 * rows.cost
    alone = EARLY.mechanism(setting, replace(away, protects="rewards"))
    budget.spend(alone, name="rewards")
    assert budget._rule.mu_of(budget.items[1]) == alone.cost


def test_the_noise_of_a_seed_voids_the_promise_as_ever() -> None:
    bandit = learner()
    assert not bandit.guarantee.private
    assert bandit.guarantee.protects == "rewards"
