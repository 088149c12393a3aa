"""What several tests need: seeded noise, random unit rows, the learner's whole state."""

import hashlib
import math
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import psycopg

from discreet import LinUCB, Privacy, Problem, Release, load
from discreet.curator._storage import everything
from discreet.curator.store import Commit, Place, Store
from discreet.errors import StoreError
from discreet.kernels import _posterior as posterior
from discreet.kernels import _random as random
from discreet.mechanism.noise.sources import NoiseSource, SeededNoise
from discreet.mechanism.variants import Named, TreeVariant, Windowed, named
from discreet.release import policies

TARGET = Privacy(epsilon=1.0, delta=1e-6)
EARLY = Windowed(start=1e-3)
"""The default, but for its first release, which is after as many rows as there are features."""


def target(variant: Named) -> Privacy | None:
    """A privacy target, for variants that take one."""
    return TARGET if variant.private else None


def noise_of(variant: Named) -> str:
    """The default, exact noise, for variants that have it."""
    wishart = isinstance(variant, TreeVariant) and variant.family is named("wishart").family
    return "float" if wishart else "exact"


class AsSimulated:
    """`policies.PosteriorUCB`, with the draws that a compiled loop takes from its stream."""

    def __init__(self, rule: policies.PosteriorUCB, seed: np.random.SeedSequence) -> None:
        self.rule, self.state = rule, random.seed_state(seed)

    def choose(self, release: Release, actions: np.ndarray) -> policies.Choice:
        known, probabilities = release.posterior, self.rule.probabilities(release, actions)
        rule = self.rule.numbers(release.mechanism)
        share = known.share(rule.uniform)
        if share > 0.0 and random.uniform(self.state) < share:
            index = int(random.below(self.state, len(actions)))
        else:
            shift = np.zeros(known.centre.size)
            if rule.dither > 0.0:
                which = int(random.below(self.state, posterior.TILTS))
                scale = rule.dither / math.sqrt(known.prior)
                posterior.tilt(release.number, which, known.factor, known.firsts, scale, shift)
            unit = np.tril(known.factor, -1) + np.eye(len(known.factor))
            centre = known.centre + np.linalg.solve(unit.T, shift)
            bonus = rule.deviations
            rows = min(release.rows, release.mechanism.memory or math.inf)
            bonus += rule.growth * math.sqrt(math.log(max(1, rows)) / release.moment.size)
            scores = actions @ centre + bonus * known.deviations(actions)
            index = int(scores.argmax())
            assert probabilities[index] >= (1 - share) / posterior.TILTS
        assert probabilities[index] >= share / len(actions)
        return policies.Choice(index, float(probabilities[index]))


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
    assert curator.rounds == curator._held.rounds  # whatever was left is settled
    items, _ = everything(curator._storage.records, curator._document(), curator._held, [])
    return {(kind, number): value for kind, number, value in items}


def restarted(learner: LinUCB, place: Place, **more: object) -> LinUCB:
    """The learner after it was stored at a place, closed, and loaded again."""
    learner.save(place)
    learner.close()
    return load(place, **more)


def crashed(learner: LinUCB, folder: Path, **more: object) -> LinUCB:
    """What a new process would find if that of a stored learner died now.

    What is stored is copied as it is, and nobody holds the copy: to another folder, or in a
    database under another name.
    """
    if isinstance(learner.path, Path):
        shutil.copytree(learner.path.parent, folder)
        return load(folder / learner.path.name, **more)
    address, _, name = learner.path.partition("#")
    with psycopg.connect(address) as database:
        for table, columns in (
            ("learner", "sequence, owner"),
            ("item", "kind, number, value"),
            ("ledger", "number, line"),
        ):
            database.execute(
                f"INSERT INTO discreet_{table} SELECT %s, {columns} "  # noqa: S608  # our own
                f"FROM discreet_{table} WHERE name = %s",
                (str(folder), name),
            )
    return load(f"{address}#{folder}", **more)


def died(learner: LinUCB) -> None:
    """Give up a stored learner as the end of its process does, and do nothing else."""
    learner._curator._storage.store._finalizer()


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


class Watched:
    """A store that counts what is asked of it, and that fails or waits when it is told to.

    Attributes:
        commits: the changes that were asked for.
        appends: how often lines were added to the ledger.
        before: called before each commit or append, with its name; it may raise.
        after: the same, after it happened.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits: list[Commit] = []
        self.appends = 0
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None

    def commit(self, change: Commit) -> None:
        self.commits.append(change)
        self.before("commit")
        self._store.commit(change)
        self.after("commit")

    def append(self, first: int, lines: list[bytes]) -> None:
        self.appends += 1
        self.before("append")
        self._store.append(first, lines)
        self.after("append")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._store, name)


def watched(learner: LinUCB) -> Watched:
    """Put a watched store in place of a learner's own."""
    learner._curator._storage.store = found = Watched(learner._curator._storage.store)
    return found


def full_disk(*kinds: str, times: int = 10**9) -> Callable[[str], None]:
    """Fails the first few of some kinds of writes: 'commit', 'append' or both."""
    left = [times]

    def fails(kind: str) -> None:
        if kind in kinds and left[0]:
            left[0] -= 1
            raise StoreError("path", "could not be used (No space left on device)")

    return fails


def sha(number: int) -> str:
    """A digest to tell one release from another."""
    return hashlib.sha256(b"%d" % number).hexdigest()


class Interrupting:
    """Raises KeyboardInterrupt at the n-th instruction inside some modules."""

    def __init__(self, at: int, modules: Iterable[ModuleType]) -> None:
        self._left = at
        self._files = {module.__file__ for module in modules}

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401
        if frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._left -= 1
            if self._left == 0:
                raise KeyboardInterrupt
        return self._trace
