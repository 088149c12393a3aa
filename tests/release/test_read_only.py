"""What leaves the learner is a fact: nobody can write to its arrays."""

from collections.abc import Iterator
from dataclasses import fields

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import LinUCB, Problem
from discreet.mechanism.variants import Named
from helpers import target


def arrays(bandit: LinUCB) -> Iterator[tuple[str, NDArray[np.float64]]]:
    for shown in (bandit.release, bandit.confidence):
        for field in fields(shown):
            value = getattr(shown, field.name)
            if isinstance(value, np.ndarray):
                yield f"{type(shown).__name__}.{field.name}", value


@pytest.mark.parametrize("rows", [0, 25])
def test_no_array_of_a_release_or_a_confidence_set_can_be_made_writable(
    variant: Named, problem: Problem, rows: int
) -> None:
    bandit = LinUCB(problem, horizon=50, privacy=target(variant), variant=variant, noise="float")
    for _ in range(rows):
        bandit.learn(bandit.choose(np.eye(3)), 0.5)
    found = dict(arrays(bandit))
    assert len(found) >= 5
    for array in found.values():
        base = array
        while isinstance(base, np.ndarray):
            with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
                base.setflags(write=True)
            base = base.base


def test_a_release_does_not_share_memory_with_what_it_was_made_of(problem: Problem) -> None:
    bandit = LinUCB(problem, horizon=50, variant="nonprivate")
    release = bandit.release
    before = release.gram.copy()
    bandit.learn(bandit.choose(np.eye(3)), 1.0)
    np.testing.assert_array_equal(release.gram, before)
