"""What several tests need: seeded noise, random unit rows, the learner's whole state."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet import LinUCB, Privacy, Problem, load
from discreet.curator.records import Head
from discreet.mechanism.noise.sources import NoiseSource, SeededNoise
from discreet.mechanism.variants import WISHART, Named, TreeVariant

TARGET = Privacy(epsilon=1.0, delta=1e-6)


def target(variant: Named) -> Privacy | None:
    """A privacy target, for variants that take one."""
    return TARGET if variant.private else None


def noise_of(variant: Named) -> str:
    """The default, exact noise, for variants that have it."""
    wishart = isinstance(variant, TreeVariant) and variant.family is WISHART
    return "float" if wishart else "exact"


def seeded(seed: int) -> SeededNoise:
    return SeededNoise(np.random.SeedSequence(seed))


def unit_rows(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    rows = rng.normal(size=(count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def learner_for(
    variant: Named,
    problem: Problem,
    *,
    horizon: int = 64,
    seed: int = 0,
    noise: str | None = None,
    noise_source: NoiseSource | None = None,
    **more: object,
) -> LinUCB:
    """A learner with repeatable noise: exact, if its variant has that and nothing else is said."""
    return LinUCB(
        problem,
        horizon=horizon,
        privacy=target(variant),
        variant=variant,
        noise=noise_of(variant) if noise is None else noise,
        noise_source=seeded(seed) if noise_source is None else noise_source,
        **more,
    )


def whole_state(learner: LinUCB) -> dict[tuple[int, int], bytes]:
    """Everything a store would hold but the names of sessions, for comparing before and after."""
    curator = learner._curator
    counts = Head(rounds=curator.rounds, given_up=curator.given_up)
    items, _ = curator._records.everything(
        curator._document(), curator._sums, curator._waiting, [], counts
    )
    return {(kind, number): value for kind, number, value in items}


def restarted(learner: LinUCB, path: Path, **more: object) -> LinUCB:
    """The learner after it was stored at a path, closed, and loaded again."""
    learner.save(path)
    learner.close()
    return load(path, **more)


def crashed(learner: LinUCB, folder: Path, **more: object) -> LinUCB:
    """What a new process would find if that of a stored learner died now.

    The files are copied as they are, and nobody holds the copies.
    """
    shutil.copytree(learner.path.parent, folder)
    return load(folder / learner.path.name, **more)


def died(learner: LinUCB) -> None:
    """Give up a stored learner as the end of its process does, and do nothing else."""
    learner._curator._store._finalizer()


def played(learner: LinUCB, rows: int, seed: int = 0) -> LinUCB:
    rng = np.random.default_rng(seed)
    for _ in range(rows):
        learner.learn(learner.choose(unit_rows(rng, 4, 3)), float(rng.uniform(-1, 1)))
    return learner


def assert_same(found: LinUCB, learner: LinUCB) -> None:
    """All that can be seen of two learners, and their raw state but for the names of sessions."""
    for name in ("gram", "moment"):
        np.testing.assert_array_equal(getattr(found.release, name), getattr(learner.release, name))
    assert found.release.number == learner.release.number
    assert found.ledger.head == learner.ledger.head
    assert whole_state(found) == whole_state(learner)


def failing(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    *,
    times: int = 1,
    at: Callable[[int], bool] = lambda _: True,
) -> None:
    """Let a function of `os` fail for the first few calls on some files."""
    real, left = getattr(os, name), [times]

    def fails(file: int, *more: object) -> object:
        if left[0] and at(file):
            left[0] -= 1
            raise OSError(28, "No space left on device")
        return real(file, *more)

    monkeypatch.setattr(os, name, fails)
