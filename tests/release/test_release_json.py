"""A release as JSON: the same to the last bit, or refused."""

import copy
import json
from typing import Any

import numpy as np
import pytest

from discreet import LinUCB, Problem
from discreet.errors import ParameterError
from discreet.mechanism.variants import Named
from discreet.release import Release
from discreet.release.ledger import fingerprint
from helpers import EARLY, learner_for, played

IN_BLOCKS = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1, blocks=(2, 1))


def same(found: Release, release: Release) -> None:
    for name in ("gram", "moment"):
        np.testing.assert_array_equal(getattr(found, name), getattr(release, name))
    for name in ("number", "rows", "spread", "weight", "mechanism"):
        assert getattr(found, name) == getattr(release, name)
    assert fingerprint(found) == fingerprint(release)


def test_it_comes_back_as_it_was(variant: Named, problem: Problem) -> None:
    learner = played(learner_for(variant, problem), 60)
    for release in (learner.release, learner_for(variant, problem).release):
        document = release.to_json()
        same(Release.from_json(document), release)
        same(Release.from_json(json.dumps(document)), release)
        same(Release.from_json(json.dumps(document).encode()), release)
    again = Release.from_json(learner.release.to_json())
    assert learner.ledger.holds(again)
    sets = np.eye(3)
    np.testing.assert_array_equal(again.confidence.centre, learner.release.confidence.centre)
    assert learner.policy.choose(again, sets).index in range(3)


def blocky() -> LinUCB:
    learner = learner_for(EARLY, IN_BLOCKS)
    learner.observe(np.array([[0.6, 0.8, 0], [0, 0, 1]] * 30), [0.5, -0.5] * 30)
    return learner


def test_blocks_are_written_one_by_one() -> None:
    release = blocky().release
    document = release.to_json()
    assert [np.shape(block) for block in document["gram"]] == [(2, 2), (1, 1)]
    same(Release.from_json(document), release)


def altered(document: dict[str, Any]) -> list[Any]:
    found: list[Any] = [None, 3, [], {}, "", "{", b"\xff", "null", json.dumps([document])]
    for name in document:
        less = copy.deepcopy(document)
        del less[name]
        found.append(less)
        found += [{**document, name: wrong} for wrong in (None, "x", [], {}, -1.5, [[[1e400]]])]
    other = copy.deepcopy(document)
    other["moment"][0] = float(np.nextafter(other["moment"][0], 9))
    narrow = {**document, "spread": 1e-9}
    heavy = {**document, "weight": 2 * document["weight"]}
    later = {**document, "number": document["number"] + 1}
    found += [narrow, heavy, later]
    more = copy.deepcopy(document)
    more["gram"].append([[1.0]])
    wide = copy.deepcopy(document)
    wide["gram"][0] = [[1.0, 2.0, 3.0]]
    huge = copy.deepcopy(document)  # nothing of that size may be allocated
    huge["mechanism"]["setting"]["problem"].update(dim=10**6, blocks=[10**6])
    long = [{**document, name: 2**70} for name in ("number", "rows")]
    return [*found, other, more, wide, huge, *long]


def test_anything_else_is_refused() -> None:
    document = blocky().release.to_json()
    for wrong in altered(document):
        with pytest.raises(ParameterError, match="is no release, or was altered"):
            Release.from_json(wrong)


def test_a_ledger_knows_another_mechanism_by_its_card() -> None:
    learner = blocky()
    release = learner.release
    assert learner.ledger.holds(Release.from_json(release.to_json()))
    document = release.to_json()
    document["mechanism"]["guarantee"]["contributions_per_user"] = 3
    assert not learner.ledger.holds(Release.from_json(document))
