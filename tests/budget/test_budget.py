"""Several mechanisms under one budget: beside an independent computation, and what is refused."""

import json
import math
import re
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from discreet import Budget, LinUCB, Privacy, Problem, accounting, load, read_ledger, variants
from discreet.budget import Item
from discreet.budget import _rounding as rounding
from discreet.errors import (
    BudgetExceededError,
    CorruptFileError,
    DiscreetError,
    FileVersionError,
    MissingFileError,
    ParameterError,
    StateExistsError,
)
from discreet.evaluation import PrivateValues
from discreet.mechanism import Mechanism
from discreet.mechanism.noise.sources import SeededNoise
from discreet.privacy import Guarantee

PROBLEM = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)


def mechanism(
    epsilon: float,
    delta: float = 1e-6,
    *,
    variant: str = "windows",
    noise: str = "exact",
    **more: str,
) -> Mechanism:
    return variants.calibrate(
        variants.named(variant),
        PROBLEM,
        horizon=1000,
        privacy=Privacy(epsilon=epsilon, delta=delta, **more),  # type: ignore[arg-type]
        failure_prob=None,
        noise=noise,
    )


def values(mu: float, *, trace: float = 0.0, neighbours: str = "replacement") -> SimpleNamespace:
    """Gaussian noise of a given cost, as a budget sees it."""
    target = Guarantee(epsilon=50.0, delta=0.5, argument="a test", neighbours=neighbours)
    values.count = getattr(values, "count", 0) + 1  # type: ignore[attr-defined]
    return SimpleNamespace(
        id=f"{values.count:032x}",  # type: ignore[attr-defined]
        cost=mu,
        trace=trace,
        guarantee=target,
    )


def textbook_delta(epsilon: float, mu: float) -> float:
    """The hockey-stick divergence of N(mu, 1) from N(0, 1); for negative epsilon too."""
    if mu == 0.0:
        return max(0.0, 1 - math.exp(epsilon))
    return float(
        norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    )


def delta_after(first: float, rest: object, epsilon: float) -> float:
    """The divergence of a first Gaussian mechanism and of what follows it, given what it showed.

    Integrates over what the first one shows, x; ``rest(x, e)`` is the divergence at e of the rest.
    """

    def integrand(x: float) -> float:
        loss = first * x - first**2 / 2
        return float(norm.pdf(x - first)) * rest(x, epsilon - loss)  # type: ignore[operator]

    found, _ = integrate.quad(integrand, -12, 12 + first, limit=400, epsabs=1e-13)
    return float(found)


def randomised_response(epsilon: float, at: float) -> float:
    """The hockey-stick divergence of pure epsilon-privacy at its worst."""
    yes, no = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return max(0.0, yes - math.exp(at) * no) + max(0.0, no - math.exp(at) * yes)


# What is spent


@settings(deadline=None, max_examples=40)
@given(
    first=st.floats(0.02, 1.0),
    second=st.floats(0.02, 1.0),
    delta=st.floats(-12, -1).map(lambda power: 10**power),
)
def test_two_gaussian_mechanisms_cost_what_an_integral_says(
    first: float, second: float, delta: float
) -> None:
    budget = Budget(epsilon=100, delta=delta)
    budget.spend(values(first))
    budget.spend(values(second))
    epsilon = budget.spent.epsilon
    assert epsilon is not None
    assert budget.spent.delta == delta
    if epsilon == 0.0:
        return
    found = delta_after(first, lambda _, at: textbook_delta(at, second), epsilon)
    assert found == pytest.approx(delta, rel=1e-6, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(mus=st.lists(st.floats(1e-3, 0.5), min_size=1, max_size=8), data=st.data())
def test_spending_never_counts_less_than_the_exact_curve_and_only_grows(
    mus: list[float], data: st.DataObject
) -> None:
    budget = Budget(epsilon=10, delta=data.draw(st.sampled_from([1e-9, 1e-6, 1e-3])))
    before = 0.0
    for at, mu in enumerate(mus):
        room = budget.left
        budget.spend(values(mu, trace=data.draw(st.sampled_from([0.0, 1e-22]))))
        assert budget.left < room
        spent = budget.spent.epsilon
        assert spent is not None
        assert before <= spent <= budget.epsilon
        exact = math.sqrt(math.fsum(one * one for one in mus[: at + 1]))
        assert accounting.gaussian_epsilon(delta=budget.delta, mu=exact * (1 - 1e-12)) <= spent
        before = spent
    assert (
        budget.left**2 + math.fsum(mu * mu for mu in mus)
        <= accounting.gaussian_mu(Privacy(epsilon=10, delta=budget.delta)) ** 2
    )


@settings(deadline=None, max_examples=40)
@given(
    used=st.floats(0.0, 0.9999999),
    epsilon=st.floats(0.01, 20),
    delta=st.sampled_from([1e-12, 1e-6, 0.01]),
)
def test_what_is_left_fits_and_a_little_more_does_not(
    used: float, epsilon: float, delta: float
) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    if used * budget.left > 1e-6:
        budget.spend(values(used * budget.left))
    room = budget.left
    with pytest.raises(BudgetExceededError) as refused:
        budget.spend(values(room * (1 + 1e-6) + 1e-6))
    assert refused.value.left == room
    budget.spend(values(room))
    assert budget.spent.epsilon is not None
    assert budget.spent.epsilon <= epsilon
    assert budget.left < 1e-5 * max(1.0, room)


def test_nothing_spent_is_nothing_and_what_is_left_is_the_whole_budget() -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    assert (budget.spent.epsilon, budget.spent.delta) == (0.0, 0.0)
    whole = accounting.gaussian_mu(Privacy(epsilon=1, delta=1e-6))
    assert whole * (1 - 1e-6) < budget.left < whole
    assert budget.left_apart == (0.0, 0.0)


# A plan that changes in view of what was shown


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.4, 1.0])
def test_a_second_mechanism_chosen_by_what_the_first_one_showed_keeps_the_promise(
    threshold: float,
) -> None:
    budget = Budget(epsilon=1, delta=0.01)
    first = 0.5 * budget.left
    budget.spend(values(first))
    room = budget.left

    def rest(x: float, at: float) -> float:
        return textbook_delta(at, room if x > threshold else 0.3 * room)

    assert delta_after(first, rest, 1.0) <= 0.01
    always = delta_after(first, lambda _, at: textbook_delta(at, room), 1.0)
    assert always == pytest.approx(0.01, rel=1e-4)


def test_without_a_share_set_apart_a_changing_plan_could_break_the_promise() -> None:
    """Why mechanisms without a mu have a share of their own: a counterexample, and the rule."""
    epsilon, delta, first = 1.0, 0.01, 0.2
    # The naive rule would allow any pure epsilon e with delta_mu(1 - e) <= delta.
    naive = epsilon - accounting.gaussian_epsilon(delta=delta, mu=first)
    more = math.sqrt(accounting.gaussian_mu(Privacy(epsilon=1, delta=0.01)) ** 2 - first**2)

    def worst(_: float, at: float) -> float:
        return max(textbook_delta(at, more), randomised_response(naive, at))

    assert delta_after(first, worst, epsilon) > 1.05 * delta
    # With a share set apart both may follow, in any order, and the promise is kept.
    budget = Budget(epsilon=epsilon, delta=delta, apart_epsilon=0.4)
    budget.spend(values(first))

    def both(_: float, at: float) -> float:
        yes = 1 / (1 + math.exp(-0.4))
        return sum(
            weight * textbook_delta(at - loss, budget.left)
            for weight, loss in ((yes, 0.4), (1 - yes, -0.4))
        )

    assert delta_after(first, both, epsilon) <= delta


# Mechanisms without a mu


def test_wishart_noise_and_bare_guarantees_add_up_in_the_share_set_apart() -> None:
    budget = Budget(epsilon=3, delta=1e-5, apart_epsilon=1.5, apart_delta=6.5e-6)
    wishart = mechanism(0.5, variant="wishart", noise="float")
    assert wishart.cost is None
    budget.spend(wishart, name="wishart")
    budget.spend(Guarantee(epsilon=0.75, delta=5e-6, argument="a survey"), name="survey")
    assert budget.left_apart == (0.25, pytest.approx(5e-7))
    assert (budget.spent.epsilon, budget.spent.delta) == (1.25, pytest.approx(6e-6))
    room = budget.left
    assert room == pytest.approx(
        accounting.gaussian_mu(Privacy(epsilon=1.5, delta=3.5e-6)), rel=1e-6
    )
    with pytest.raises(BudgetExceededError, match="without a mu"):
        budget.spend(Guarantee(epsilon=0.26, delta=0.0, argument="more"))
    budget.spend(values(room / 2))
    spent = budget.spent
    assert spent.epsilon is not None
    expected = 1.25 + accounting.gaussian_epsilon(delta=4e-6, mu=room / 2)
    assert spent.epsilon == pytest.approx(expected, rel=1e-6)


def test_without_a_share_set_apart_they_are_refused_with_advice() -> None:
    budget = Budget(epsilon=3, delta=1e-5)
    with pytest.raises(BudgetExceededError, match="apart_epsilon"):
        budget.spend(Guarantee(epsilon=0.1, delta=1e-9, argument="a survey"))
    assert budget.items == ()


def test_sums_of_epsilons_are_exact_and_rounded_against_the_spender() -> None:
    budget = Budget(epsilon=1, delta=1e-5, apart_epsilon=0.3, apart_delta=1e-6)
    budget.spend(Guarantee(epsilon=0.1, delta=1e-9, argument="one"))
    with pytest.raises(BudgetExceededError):  # 0.1 + 0.2 is above 0.3 in floating point
        budget.spend(Guarantee(epsilon=0.2, delta=1e-9, argument="two"))


def test_noise_too_coarse_to_pass_for_gaussian_counts_by_its_epsilon() -> None:
    budget = Budget(epsilon=60, delta=0.6, apart_epsilon=50, apart_delta=0.5)
    budget.spend(values(0.1, trace=0.01))
    assert budget.left_apart[0] == 0.0
    budget = Budget(epsilon=1, delta=1e-6)
    with pytest.raises(BudgetExceededError, match="without a mu"):
        budget.spend(values(0.1, trace=0.01))


def test_traces_add_up_and_are_refused_beyond_their_share() -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    share = 1e-6 * 1e-6 * math.exp(-1)
    budget.spend(values(0.01, trace=0.6 * share))
    with pytest.raises(BudgetExceededError, match="rounding of exact noise"):
        budget.spend(values(0.01, trace=0.6 * share))
    budget.spend(values(0.01, trace=0.3 * share))


# Neighbours and contributions


def test_a_weaker_promise_counts_twice_and_a_stronger_one_as_it_is() -> None:
    plain, weaker = Budget(epsilon=2, delta=1e-6), Budget(epsilon=2, delta=1e-6)
    plain.spend(values(0.2))
    weaker.spend(values(0.1, neighbours="add-remove"))
    assert weaker.left == plain.left
    assert "counted twice" in str(weaker)
    lenient = Budget(epsilon=2, delta=1e-6, neighbours="add-remove")
    lenient.spend(values(0.2))
    assert lenient.left == plain.left
    apart = Budget(epsilon=3, delta=1e-5, apart_epsilon=2, apart_delta=5e-6)
    apart.spend(Guarantee(epsilon=1, delta=1e-6, argument="weaker", neighbours="add-remove"))
    left = apart.left_apart
    assert left[0] == 0.0
    assert left[1] == pytest.approx(5e-6 - (1 + math.e) * 1e-6, rel=1e-9)
    assert left[1] <= 5e-6 - (1 + math.e) * 1e-6
    with pytest.raises(BudgetExceededError):
        apart.spend(Guarantee(epsilon=800, delta=1e-6, argument="weaker", neighbours="add-remove"))


def test_a_persons_rounds_in_all_learners_are_counted_together() -> None:
    budget = Budget(epsilon=2, delta=1e-6)
    half = budget.privacy_for_next(learners=2, contributions_per_user=3)
    assert half.contributions_per_user == 3
    for privacy in (half, Privacy(epsilon=half.epsilon, delta=half.delta)):
        budget.spend(
            variants.calibrate(
                variants.named("windows"),
                PROBLEM,
                horizon=1000,
                privacy=privacy,
                failure_prob=None,
                noise="exact",
            )
        )
    assert budget.guarantee.contributions_per_user == 4
    assert (budget.guarantee.epsilon, budget.guarantee.delta) == (2, 1e-6)


# Targets that fit


@settings(deadline=None, max_examples=25)
@given(
    epsilon=st.floats(0.2, 10),
    delta=st.sampled_from([1e-9, 1e-6, 1e-3]),
    share=st.floats(0.001, 1.0),
    learners=st.integers(1, 6),
    variant=st.sampled_from(["windows", "tight"]),
)
def test_as_many_learners_as_asked_for_fit_with_the_target_that_is_given(
    epsilon: float, delta: float, share: float, learners: int, variant: str
) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    target = budget.privacy_for_next(delta=delta * share, learners=learners)
    assert target.delta == delta * share
    for _ in range(learners):
        budget.spend(mechanism(target.epsilon, target.delta, variant=variant))
    assert budget.left < 0.02 * accounting.gaussian_mu(target)
    with pytest.raises(BudgetExceededError):
        budget.spend(mechanism(target.epsilon / 2, target.delta, variant=variant))


def test_a_refusal_says_what_is_left_and_a_target_that_fits() -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    budget.spend(mechanism(0.8), name="recommendations")
    before = budget.to_json()
    with pytest.raises(BudgetExceededError, match="would fit") as refused:
        budget.spend(mechanism(0.8), name="e-mails")
    assert budget.to_json() == before
    said = str(refused.value)
    assert "'e-mails' needs" in said
    fitting = float(said.partition("epsilon=")[2].partition(",")[0])
    budget.spend(mechanism(fitting), name="e-mails")
    assert [item.name for item in budget.items] == ["recommendations", "e-mails"]


def test_the_target_that_fits_a_budget_for_rewards_can_be_used_as_it_is_printed() -> None:
    budget = Budget(epsilon=1, delta=1e-6, protects="rewards")
    budget.spend(mechanism(0.8, protects="rewards"), name="recommendations")
    with pytest.raises(BudgetExceededError, match="would fit") as refused:
        budget.spend(mechanism(0.8, protects="rewards"), name="e-mails")
    advice = re.search(r"Privacy\((.*)\) would fit", str(refused.value))
    assert advice is not None
    words = dict(part.replace("'", "").split("=") for part in advice[1].split(", "))
    fitting = mechanism(float(words.pop("epsilon")), float(words.pop("delta")), **words)
    assert fitting.guarantee.protects == "rewards"
    budget.spend(fitting, name="e-mails")


def test_one_learner_may_take_the_whole_budget_to_the_last_digit() -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    budget.spend(mechanism(1.0))
    assert budget.left == 0.0
    assert (budget.spent.epsilon, budget.spent.delta) == (1.0, 1e-6)
    assert Budget.from_json(budget.to_json()) == budget
    with pytest.raises(BudgetExceededError):
        budget.spend(values(1e-9))
    with pytest.raises(BudgetExceededError, match="no learner fits"):
        budget.privacy_for_next()
    second = Budget(epsilon=1, delta=1e-6)
    second.spend(values(1e-3))
    with pytest.raises(BudgetExceededError):  # only the first may
        second.spend(mechanism(1.0))


# Who is who


def test_a_learner_counts_once_however_it_comes_and_a_new_one_counts_anew(tmp_path: Path) -> None:
    budget = Budget(epsilon=2, delta=1e-6)
    target = budget.privacy_for_next(learners=3)
    path = tmp_path / "one"
    with LinUCB(PROBLEM, horizon=1000, privacy=target, path=path) as bandit:
        item = budget.spend(bandit, name="one")
        assert item.id == bandit.ledger.learner
        room = budget.left
        assert budget.spend(bandit) is item
    assert budget.spend(read_ledger(path)) is item
    with load(path) as bandit:
        assert budget.spend(bandit, name="another name") is item
    assert budget.left == room
    for file in tmp_path.iterdir():
        file.unlink()
    with LinUCB(PROBLEM, horizon=1000, privacy=target, path=path) as bandit:
        budget.spend(bandit)
    assert len(budget.items) == 2
    assert budget.left < room


def test_a_ledger_of_a_learner_that_was_never_registered_counts_as_the_learner_would() -> None:
    bandit = LinUCB(PROBLEM, horizon=1000, privacy=Privacy(epsilon=1, delta=1e-6))
    first, second = Budget(epsilon=2, delta=1e-5), Budget(epsilon=2, delta=1e-5)
    assert first.spend(bandit) == second.spend(bandit.ledger)


def test_private_values_share_the_budget() -> None:
    budget = Budget(epsilon=2, delta=1e-6)
    target = budget.privacy_for_next(learners=2)
    found = PrivateValues(("a", "b"), low=0, high=1, clip=5, privacy=target)
    item = budget.spend(found, name="evaluation")
    assert budget.spend(found) is item
    assert item.mu is not None
    assert item.mu == pytest.approx(accounting.gaussian_mu(target), rel=1e-6)
    assert item.mu <= accounting.gaussian_mu(target)
    assert item.trace > 0
    budget.spend(mechanism(target.epsilon, target.delta))
    assert budget.left < 0.01
    seeded = PrivateValues(
        low=0, high=1, clip=5, privacy=target, noise_source=SeededNoise(np.random.SeedSequence(1))
    )
    with pytest.raises(ParameterError, match="promises no privacy"):
        budget.spend(seeded)


def test_what_promises_nothing_or_is_something_else_is_refused() -> None:
    budget = Budget(epsilon=2, delta=1e-6)
    seeded = LinUCB(
        PROBLEM,
        horizon=100,
        privacy=Privacy(epsilon=1, delta=1e-6),
        noise_source=SeededNoise(np.random.SeedSequence(1)),
    )
    for nothing in (
        Guarantee.nothing("a test"),
        seeded,
        LinUCB(PROBLEM, horizon=9, variant="nonprivate"),
    ):
        with pytest.raises(ParameterError, match="promises no privacy"):
            budget.spend(nothing)
    for other in (None, 1.0, "learner", Privacy(epsilon=1, delta=1e-6), object()):
        with pytest.raises(ParameterError, match="give a learner"):
            budget.spend(other)  # type: ignore[arg-type]
    forged = values(0.1)
    budget.spend(forged)
    forged.cost = 0.05
    with pytest.raises(ParameterError, match="forged"):
        budget.spend(forged)


def test_names_are_made_up_or_given_and_never_taken_twice() -> None:
    budget = Budget(epsilon=2, delta=1e-6)
    assert [budget.spend(mechanism(0.1)).name for _ in range(3)] == [
        "mechanism windows",
        "mechanism windows 2",
        "mechanism windows 3",
    ]
    budget.spend(values(0.01), name="mine")
    with pytest.raises(ParameterError, match="taken"):
        budget.spend(values(0.01), name="mine")
    for bad in ("", "x" * 201, 5):
        with pytest.raises(ParameterError, match="name"):
            budget.spend(values(0.01), name=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"delta": 1.0},
        {"neighbours": "friends"},
        {"apart_epsilon": -0.1},
        {"apart_epsilon": 1.0},
        {"apart_epsilon": 2.0},
        {"apart_delta": 1e-6},
        {"apart_delta": math.nan},
    ],
)
def test_impossible_budgets_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        Budget(**({"epsilon": 1.0, "delta": 1e-6} | wrong))  # type: ignore[arg-type]


def test_extreme_budgets_never_fail_otherwise() -> None:
    for epsilon in (1e-6, 0.1, 600.0, 800.0, 1e12):
        for delta in (1e-100, 1e-6, 1 - 1e-9):
            budget = Budget(epsilon=epsilon, delta=delta)
            assert budget.left > 0
            assert str(budget)
            try:
                target = budget.privacy_for_next(delta=delta / 2)
            except (BudgetExceededError, ParameterError):  # at 5e-101 the latter
                continue
            assert target.epsilon > 0


def test_threads_never_spend_more_than_there_is() -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    one = values(budget.left / 4)  # sixteen fit, or fifteen with rounding
    refused = []

    def spend() -> None:
        try:
            budget.spend(values(one.cost))
        except BudgetExceededError as error:
            refused.append(error)

    threads = [Thread(target=spend) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(budget.items) in {15, 16}
    assert len(budget.items) + len(refused) == 40
    assert budget.spent.epsilon is not None
    assert budget.spent.epsilon <= 1


# Files


def full() -> Budget:
    budget = Budget(epsilon=3, delta=1e-5, apart_epsilon=1, apart_delta=2e-6)
    budget.spend(mechanism(0.5), name="windows <b>")
    budget.spend(Guarantee(epsilon=0.5, delta=1e-6, argument="a survey"))
    budget.spend(values(0.05, neighbours="add-remove"))
    return budget


def test_json_both_ways() -> None:
    budget = full()
    text = json.dumps(budget.to_json())
    for form in (budget.to_json(), text, text.encode()):
        again = Budget.from_json(form)
        assert again == budget
        assert (again.left, again.left_apart) == (budget.left, budget.left_apart)
    again.spend(values(0.01))
    assert again != budget


def test_entries_that_do_not_fit_or_are_something_else_are_refused() -> None:
    entry = full().to_json()
    for wrong in (
        entry | {"epsilon": 1.01},
        entry | {"format": "x"},
        entry | {"version": 0},
        entry | {"version": True},
        entry | {"epsilon": True},
        entry | {"more": 1},
        entry | {"items": entry["items"] + entry["items"][:1]},
        entry | {"items": [entry["items"][0] | {"mu": 5.0}, *entry["items"][1:]]},
        entry | {"items": [entry["items"][0] | {"mu": -5.0}]},
        entry | {"items": [{}]},
        entry | {"items": {}},
        {},
        [],
        "",
        b"\xff",
        "[" * 100_000,
    ):
        with pytest.raises(ParameterError, match="budget"):
            Budget.from_json(wrong)  # type: ignore[arg-type]
    with pytest.raises(FileVersionError):
        Budget.from_json(entry | {"version": 2})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_altered_entries_are_refused_or_fit(data: st.DataObject) -> None:
    entry = json.loads(json.dumps(full().to_json()))
    where = entry
    if data.draw(st.booleans()):
        where = data.draw(st.sampled_from(entry["items"]))
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(JSON)
    try:
        found = Budget.from_json(entry)
    except DiscreetError:
        return
    assert Budget.from_json(found.to_json()) == found
    assert found.spent.epsilon is not None
    assert found.spent.epsilon <= found.epsilon


@settings(deadline=None, max_examples=150)
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.booleans())
def test_altered_bytes_are_refused_or_fit(at: int, byte: int, cut: bool) -> None:  # noqa: FBT001
    data = bytearray(json.dumps(full().to_json()).encode())
    if cut:
        del data[at % len(data) :]
    else:
        data[at % len(data)] = byte
    try:
        found = Budget.from_json(bytes(data))
    except DiscreetError:
        return
    assert found.left >= 0


def test_a_saved_budget_is_the_same_and_is_not_overwritten_by_one_that_knows_less(
    tmp_path: Path,
) -> None:
    path, budget = tmp_path / "people.budget", full()
    budget.save(path)
    assert Budget.load(path) == budget
    other = Budget.load(path)
    other.spend(values(0.01))
    other.save(path)
    budget.spend(values(0.02))
    with pytest.raises(StateExistsError, match="others have spent"):
        budget.save(path)
    assert Budget.load(path) == other
    assert [file.name for file in tmp_path.iterdir()] == ["people.budget"]
    path.write_text("something else", "utf-8")
    with pytest.raises(StateExistsError, match="something else"):
        budget.save(path)
    with pytest.raises(CorruptFileError):
        Budget.load(path)
    with pytest.raises(MissingFileError):
        Budget.load(tmp_path / "none")
    with pytest.raises(DiscreetError):
        Budget.load(tmp_path)
    with pytest.raises(DiscreetError):
        budget.save(tmp_path / "no folder" / "people.budget")


def test_it_prints_as_a_table_in_a_terminal_and_in_a_notebook() -> None:
    budget = full()
    text = str(budget)
    assert "windows <b>" in text
    assert "of the share set apart" in text
    assert "Spent: epsilon" in text
    assert str(budget.guarantee) in text
    page = budget._repr_html_()
    assert "windows &lt;b&gt;" in page
    assert "<b>" not in page
    assert repr(budget).startswith("Budget(epsilon=3, delta=1e-05, items=3, left=")


def test_shown_digits_are_on_the_safe_side() -> None:
    for number in (0.12345, 0.123449, 99996.0, 3e-9, 1.0):
        assert float(rounding.floored(number)) <= number <= float(rounding.ceiled(number))
        assert float(rounding.ceiled(number)) <= number * 1.002


def test_an_item_checks_its_numbers() -> None:
    item = full().items[0]
    for wrong in ({"id": ""}, {"mu": math.nan}, {"trace": -1.0}, {"contributions_per_user": 0}):
        with pytest.raises(ParameterError):
            Item(**(vars(item) | wrong))
