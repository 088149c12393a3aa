"""The privacy card: one JSON object that says what is promised, and by what means."""

import json
import math
from dataclasses import asdict

import pytest

from discreet import Privacy, Setting, __version__, accounting
from discreet.mechanism import _codec
from discreet.mechanism.schedules import batches
from discreet.mechanism.strategies import Optimised
from discreet.mechanism.variants import Named, named
from discreet.release._card import privacy_card
from discreet.release.ledger import Ledger
from helpers import target

TARGET = Privacy(epsilon=1.0, delta=1e-6)


def test_every_variant_has_a_card_that_a_ledger_can_hold(variant: Named, setting: Setting) -> None:
    mechanism = variant.mechanism(setting, target(variant))
    card = privacy_card(mechanism)
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    assert Ledger(card).card == card
    assert (card["format"], card["version"]) == ("discreet-privacy-card", 1)
    assert card["discreet"] == __version__
    assert card["variant"] == variant.name
    assert card["text"] == str(mechanism.guarantee)
    assert card["epsilon"] == (1.0 if variant.private else None)
    assert card["delta"] == (1e-6 if variant.private else None)
    assert card["bounds"]["dim"] == 3
    assert card["bounds"]["action_norm"] == card["bounds"]["reward_bound"] == 1.0
    assert (card["horizon"], card["failure_prob"]) == (64, 0.05)
    assert card["schedule"] == _codec.to_json(mechanism)["schedule"]
    assert card["learner"] is card["releases"] is card["rows"] is None
    for name in ("neighbours", "contributions_per_user", "record", "joint", "argument"):
        assert card[name] == getattr(mechanism.guarantee, name)


def test_what_is_known_later_can_be_filled_in(setting: Setting) -> None:
    mechanism = named("tight").mechanism(setting, TARGET)
    card = privacy_card(mechanism, learner="ab" * 16, releases=3, rows=40)
    assert (card["learner"], card["releases"], card["rows"]) == ("ab" * 16, 3, 40)
    assert {**card, "learner": None, "releases": None, "rows": None} == privacy_card(mechanism)


@pytest.mark.parametrize("contributions", [1, 3])
def test_mu_spends_the_whole_budget_of_exact_accounting(
    setting: Setting, contributions: int
) -> None:
    privacy = Privacy(epsilon=1.0, delta=1e-6, contributions_per_user=contributions)
    card = privacy_card(named("tight").mechanism(setting, privacy))
    assert card["mu"] == pytest.approx(accounting.gaussian_mu(privacy), rel=1e-9)
    assert card["mu"] <= accounting.gaussian_mu(privacy)
    assert card["zcdp"] == pytest.approx(card["mu"] ** 2 / 2)
    assert card["contributions_per_user"] == contributions


def test_the_noise_is_said_in_the_units_of_the_data(setting: Setting) -> None:
    mechanism = named("tight").mechanism(setting, TARGET)
    noise = privacy_card(mechanism)["noise"]
    assert (noise["kind"], noise["exact"], noise["std_steps"]) == ("gaussian", False, None)
    assert noise["std"]["gram"] == mechanism.noise.std
    assert noise["std"]["gram_diagonal"] == pytest.approx(math.sqrt(2) * mechanism.noise.std)
    assert noise["std"]["moment"] == mechanism.noise.moment_std
    assert privacy_card(mechanism)["grid"] is None


def test_exact_noise_is_said_in_steps_too(setting: Setting) -> None:
    mechanism = named("tight").mechanism(setting, TARGET, noise="exact")
    card = privacy_card(mechanism)
    grid, noise = mechanism.grid, card["noise"]
    assert card["grid"] == asdict(grid)
    assert (noise["kind"], noise["exact"]) == ("discrete-gaussian", True)
    assert noise["std"]["gram"] == noise["std_steps"]["gram"] * grid.gram_step
    assert noise["std"]["moment"] == noise["std_steps"]["moment"] * grid.moment_step
    assert noise["std_steps"]["gram_diagonal"] >= math.sqrt(2) * noise["std_steps"]["gram"]
    assert all(type(steps) is int for steps in noise["std_steps"].values())
    assert Ledger(card).card == card


def test_wishart_noise_has_no_mu(setting: Setting) -> None:
    card = privacy_card(named("wishart").mechanism(setting, TARGET))
    assert card["mu"] is card["zcdp"] is None
    assert card["epsilon"] == 1.0
    assert (card["noise"]["kind"], card["noise"]["std"]) == ("wishart", None)


def test_where_nothing_is_promised_there_is_no_mu(variant: Named, setting: Setting) -> None:
    if variant.private:
        return
    card = privacy_card(variant.mechanism(setting, None))
    assert card["mu"] is card["zcdp"] is card["noise"]["kind"] is None
    assert "No privacy is promised" in card["text"]


def test_the_weights_of_a_strategy_are_in_the_card(setting: Setting) -> None:
    row = named("tight").with_schedule(batches(16)).with_strategy(Optimised([1, 2, 3, 4]))
    card = privacy_card(row.mechanism(setting, TARGET))
    assert card["strategy"]["weights"] == [1.0, 2.0, 3.0, 4.0]
    assert card["most_releases"] == 4
