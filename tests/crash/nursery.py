"""Children that use a stored learner and die in the middle. Run as a script: see test_crash.py.

A child says on a pipe what it is about to do and what was acknowledged to it, one JSON line each.
After its death the learner is loaded again: everything acknowledged has to be there, with the same
noise, and the call in which the child died has happened as a whole or not at all.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.curator._changes import LEARNER
from discreet.errors import StateExistsError, StateFileError, StateInUseError, StoreError
from discreet.learner import read_ledger
from discreet.mechanism.schedules import batches
from discreet.release.ledger import fingerprint
from helpers import EARLY, whole_state

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)
VARIANTS: dict[str, Any] = {
    "tight": discreet.VARIANTS["tight"].with_schedule(batches(3)),
    "gaussian": discreet.VARIANTS["gaussian"],
    "wishart": discreet.VARIANTS["wishart"],
    "nonprivate": discreet.VARIANTS["nonprivate"],
    "windows": EARLY,
    "forgetting": EARLY.with_memory(10),
}
SHORT = (
    "choose",
    "choose_many",
    "learn",
    "learn_many",
    "save",
    "forget",
    "learn",
    "forget_subject",
)
QUICK = ("choose_many", "learn_many", "forget_subject")
LATE = 20.0  # seconds after which somebody who should have let go of a learner has not

Fact = dict[str, Any]
Say = Callable[[Fact], None]
Move = tuple[int, int, int]  # rounds, rows and decisions that wait: how many more


def make(place: Path | str | None, variant: str, noise: str) -> discreet.LinUCB:
    """A learner stored at a place, or in memory."""
    return discreet.LinUCB(
        PROBLEM,
        horizon=10**6,
        privacy=None if variant == "nonprivate" else TARGET,
        variant=VARIANTS[variant],
        noise=noise,
        path=place,
    )


def warm(variant: str, noise: str) -> None:
    """Compile all that a life needs, before there are children to do it over and over again."""
    user = User(make(None, variant, noise), lambda _: None, random.Random(0))
    for call in SHORT:
        if call != "save":
            user.play(call)


def digest(learner: discreet.LinUCB) -> str:
    """Of all data that is held: sums with their noise, what waits, the counts."""
    parts = {key: value for key, value in whole_state(learner).items() if key[0] != LEARNER}
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()


def facts(learner: discreet.LinUCB) -> Fact:
    """What is acknowledged at this moment."""
    release = learner.release
    return {
        "counts": [learner.rounds, learner.rows, learner.waiting],
        "state": digest(learner),
        "number": release.number,
        "sha256": fingerprint(release),
        "head": learner.ledger.head,
        "people": unreleased(learner),
    }


def unreleased(learner: discreet.LinUCB) -> dict[str, list[int]]:
    """How many decisions that wait and how many open rows there are of everybody who has any."""
    owners, open_rows = (
        learner._curator._held.book.owners.values(),
        learner._curator._held.sums.open_rows.values(),
    )
    found: dict[str, list[int]] = {}
    for kind, digests in enumerate((owners, [row.digest for row in open_rows])):
        for digest in filter(None, digests):
            found.setdefault(digest.hex(), [0, 0])[kind] += 1
    return found


class User:
    """Makes calls on a learner, and says before each what it may change, and after it what it did.

    Attributes:
        waiting: ids of decisions that wait.
    """

    def __init__(self, learner: discreet.LinUCB, say: Say, rng: random.Random) -> None:
        self._learner = learner
        self._say = say
        self._rng = rng
        self.waiting: list[str] = []
        self._known: list[str] = []
        self._last = ""  # who came last
        self.acknowledge()

    def acknowledge(self) -> None:
        self._known = list(self.waiting)
        self._say({**facts(self._learner), "waiting": self.waiting})

    def play(self, call: str) -> None:
        """One call, if it can be made."""
        if call.startswith(("learn", "forget")) and len(self.waiting) < 2:
            call = "choose_many"
        getattr(self, f"_{call}")()
        self.acknowledge()

    def come_back(self) -> None:
        """After a call that failed: wait until the learner answers, and see what became of it."""
        end = time.monotonic() + LATE
        while True:
            try:
                found = facts(self._learner)
            except StoreError:
                assert time.monotonic() < end, "the learner does not come back"
                time.sleep(0.01)
            else:
                break
        held = self._learner._curator._held.waiting
        names = {int(one.rpartition("-")[2]): one for one in self._known}
        self.waiting = [names[number] for number in held if number in names]
        self._say({**found, "waiting": self.waiting, "troubled": True})

    def anything(self) -> None:
        calls = ("choose", "learn", "learn", "choose_many", "learn_many", "forget", "save")
        calls += ("forget_subject",)
        self.play(self._rng.choices(calls, (6, 4, 4, 2, 2, 1, 1, 1))[0])

    def _who(self) -> str | None:
        """Somebody new, somebody who comes again, or nobody knows."""
        self._last = self._rng.choice((f"person {self._rng.getrandbits(60)}", self._last))
        return self._last or None

    def _about(self, move: Move) -> None:
        self._say({"about": move})

    def _action(self) -> list[list[float]]:
        angle = self._rng.uniform(0, 6.28)
        return [[np.cos(angle) * 0.9, np.sin(angle) * 0.9]]

    def _taken(self) -> str:
        return self.waiting.pop(self._rng.randrange(len(self.waiting)))

    def _choose(self) -> None:
        self._about((1, 0, 1))
        self.waiting.append(self._learner.choose(self._action(), subject=self._who()).id)

    def _choose_many(self) -> None:
        self._about((3, 0, 3))
        whose = [self._who() for _ in range(3)]
        made = self._learner.choose_many([self._action() for _ in range(3)], subjects=whose)
        self.waiting += [one.id for one in made]

    def _learn(self) -> None:
        self._about((0, 1, -1))
        self._learner.learn(self._taken(), self._rng.uniform(-1, 1))

    def _learn_many(self) -> None:
        self._about((0, 2, -2))
        self._learner.learn_many([(self._taken(), self._rng.uniform(-1, 1)) for _ in range(2)])

    def _forget(self) -> None:
        self._about((0, 0, -1))
        self._learner.forget(self._taken())

    def _forget_subject(self) -> None:
        self._about((0, 0, 0))
        if self._last:
            self._learner.forget_subject(self._last)

    def _save(self) -> None:
        self._about((0, 0, 0))
        self._learner.save()


class Truth:
    """What has been acknowledged and shown so far, over all lives."""

    def __init__(self, place: Path | str) -> None:
        self.place = place
        self.shown: dict[int, str] = {}
        self.restored = {"exactly": 0, "one call further": 0}

    def check(self, heard: list[Fact]) -> None:
        """Load the learner after a death, twice, and compare with what was acknowledged."""
        last, about = self.believe(heard)
        learner = loaded(self.place, ledger_head=last and last["head"])
        found = facts(learner)
        self._show(found)
        if last is not None:
            self._compare(learner, found, last, about)
        ledger = read_ledger(self.place)
        assert len(ledger) == found["number"]
        for number, sha256 in self.shown.items():
            assert ledger.entries[number - 1].sha256 == sha256, "the ledger has another release"
        with contextlib.suppress(StateInUseError):
            discreet.load(self.place)
            raise AssertionError("a second opener was let in")
        let_go(learner)
        again = loaded(self.place)
        assert facts(again) == found, "a second load is another learner"
        again.close()

    def believe(self, heard: list[Fact]) -> tuple[Fact | None, Move | None]:
        """Go through what was said: the last acknowledgement, and the call that came after it."""
        last, about = None, None
        for fact in heard:
            if "about" in fact:
                about = fact["about"]
                continue
            self._show(fact)
            if last is not None and fact.get("troubled"):
                moved = [
                    now - then for now, then in zip(fact["counts"], last["counts"], strict=True)
                ]
                assert moved in ([0, 0, 0], about), "a call that failed was done in part"
                assert moved == about or fact["state"] == last["state"]
            last, about = fact, None
        return last, about

    def _compare(
        self, learner: discreet.LinUCB, found: Fact, last: Fact, about: Move | None
    ) -> None:
        moved = [now - then for now, then in zip(found["counts"], last["counts"], strict=True)]
        if found["state"] == last["state"]:
            self.restored["exactly"] += 1
            assert moved == [0, 0, 0]
        else:
            self.restored["one call further"] += 1
            assert moved == about, "an acknowledged call was lost, or one was done in part"
            if not any(moved):
                before, after = last["people"], found["people"]
                gone = [one for one in before if before[one] != after.get(one)]
                assert len(gone) == 1, "forgetting was lost, or did something else"
                assert gone[0] not in after, "somebody was forgotten in part"
        held = learner._curator._held.waiting
        lost = [one for one in last["waiting"] if int(one.rpartition("-")[2]) not in held]
        assert len(lost) == (max(0, -about[2]) if about and any(moved) else 0)

    def _show(self, fact: Fact) -> None:
        number, sha256 = fact["number"], fact["sha256"]
        if number:
            assert self.shown.setdefault(number, sha256) == sha256, f"release {number} made twice"


def loaded(place: Path | str, **more: Any) -> discreet.LinUCB:  # noqa: ANN401
    """The learner. A database may take a moment to notice that its client has died."""
    end = time.monotonic() + LATE
    while True:
        try:
            return discreet.load(place, **more)
        except StateInUseError:
            if isinstance(place, Path) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def let_go(learner: discreet.LinUCB) -> None:
    """Give the learner up without a word, as a process does that ends."""
    store = learner._curator._storage.store
    if hasattr(store, "_finalizer"):
        store._finalizer()
    else:
        store._connection.close()


class Child:
    """A forked child that does some work, and what it said.

    Attributes:
        number: of its process.
        heard: what it has said up to now.
        speaking: set when it has said something.
    """

    def __init__(self, work: Callable[[Say], None]) -> None:
        sys.stdout.flush()
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads, which do no harm here
            self.number = os.fork()
        if self.number == 0:
            os.close(reading)
            try:
                work(lambda fact: _whole_line(writing, fact))
                os._exit(0)
            except BaseException:  # noqa: BLE001  # nothing of the parent's may run in the child
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            finally:
                os._exit(1)
        os.close(writing)
        self.heard: list[Fact] = []
        self.speaking = threading.Event()
        self._listener = threading.Thread(target=self._listen, args=(reading,))
        self._listener.start()

    def _listen(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as pipe:
            for line in pipe:
                if line.endswith(b"\n"):
                    self.heard.append(json.loads(line))
                    self.speaking.set()

    def kill(self) -> None:
        os.kill(self.number, signal.SIGKILL)

    def end(self) -> list[Fact]:
        """Wait for its end; all that it said."""
        self._listener.join()
        _, status = os.waitpid(self.number, 0)
        assert status in {0, signal.SIGKILL}, "a child failed"
        return self.heard


def _whole_line(file: int, fact: Fact) -> None:
    rest = json.dumps(fact).encode() + b"\n"
    while rest:
        rest = rest[os.write(file, rest) :]


def random_deaths(place: Path | str, kills: int, seed: int) -> dict[str, int]:
    """SIGKILL at random instants, from the first moment of loading on."""
    rng = random.Random(seed)
    truth = Truth(place)

    def work(kill: int, say: Say) -> None:
        user = User(loaded(place), say, random.Random(seed + kill))
        while True:
            user.anything()

    for kill in range(kills):
        child = Child(partial(work, kill))
        if kill % 2:  # so that on any machine half of them die in the middle of calls
            assert child.speaking.wait(LATE)
        time.sleep(rng.choice((0.01, 0.05, 0.15)) * rng.random())
        child.kill()
        truth.check(child.end())
    return {**truth.restored, "releases": len(truth.shown), "kills": kills}


def troubles(place: str, trouble: Callable[[], object], times: int, seed: int) -> dict[str, int]:
    """Make trouble for a learner's server again and again while the learner goes on.

    It is never loaded again, and killed only at the end. A call that failed happened as a whole or
    not at all, and so says the learner itself as soon as its server answers.
    """
    rng = random.Random(seed)
    truth = Truth(place)

    def work(say: Say) -> None:
        user = User(loaded(place), say, random.Random(seed))
        while True:
            try:
                user.anything()
            except StoreError:
                user.come_back()

    child = Child(work)
    assert child.speaking.wait(LATE)
    for _ in range(times):
        time.sleep(rng.choice((0.05, 0.3)) * rng.random())
        trouble()
    time.sleep(0.2)
    child.kill()
    heard = child.end()
    truth.check(heard)
    failed = sum(1 for fact in heard if fact.get("troubled"))
    calls = sum(1 for fact in heard if "about" in fact)
    return {**truth.restored, "failed": failed, "calls": calls, "releases": len(truth.shown)}


def arm(at: int, when: str) -> None:
    """Let this process die in a call that changes a file; see deadly.c."""
    os.environ.update(DEADLY_AT=str(at), DEADLY_WHEN=when)


def every_death(path: Path, rounds: int, seed: int) -> dict[str, int]:
    """Die at every single call that changes a file, in each of three ways, life after life."""
    truth = Truth(path)
    points = 0
    calls = SHORT * rounds if rounds else QUICK

    def work(deadly: int, when: str, say: Say) -> None:
        arm(deadly, when)
        learner = discreet.load(path)
        user = User(learner, say, random.Random(seed + deadly))
        for call in calls:
            user.play(call)
        learner.close()
        say({"through": True})

    for when in ("before", "half", "after"):
        deadly, through = 0, False
        while not through:
            deadly += 1
            heard = Child(partial(work, deadly, when)).end()
            through = {"through": True} in heard
            truth.check(heard[:-1] if through else heard)
            points += not through
    return {**truth.restored, "points": points, "releases": len(truth.shown)}


def every_death_at_birth(path: Path, variant: str, noise: str) -> dict[str, int]:
    """Die at every call that changes a file while a learner is stored for the first time.

    Afterwards the path loads, or a new learner can be stored there; never both, and it loads
    if the first one was acknowledged.
    """
    ends = {"loaded": 0, "begun anew": 0}
    points = 0

    def work(deadly: int, when: str, say: Say) -> None:
        learner = make(None, variant, noise)
        learner.learn(learner.choose([[0.5, 0.5]]), 0.5)
        say(facts(learner))
        arm(deadly, when)
        learner.save(path)
        say(facts(learner))

    for when in ("before", "half", "after"):
        deadly, through = 0, False
        while not through:
            deadly += 1
            shutil.rmtree(path.parent, ignore_errors=True)
            path.parent.mkdir()
            heard = Child(partial(work, deadly, when)).end()
            through = len(heard) == 2
            ends[_born(path, heard, variant, noise)] += 1
            points += not through
    return {**ends, "points": points}


def _born(path: Path, heard: list[Fact], variant: str, noise: str) -> str:
    """What became of a learner that was stored for the first time, or not."""
    try:
        learner = discreet.load(path)
    except StateFileError:
        assert len(heard) == 1, "a learner that was stored does not load"
        other = make(path, variant, noise)
        User(other, lambda _: None, random.Random(0)).play("choose_many")
        found = facts(other)
        other.close()
        with discreet.load(path) as again:
            assert facts(again) == found
        return "begun anew"
    with learner:
        assert facts(learner) == heard[0]
    with contextlib.suppress(StateExistsError):
        make(path, variant, noise)
        raise AssertionError("a learner was overwritten")
    return "loaded"


def main() -> None:
    folder, variant, noise, how, count, seed = sys.argv[1:]
    path = Path(folder) / "state"
    warm(variant, noise)
    os.environ["DEADLY_FOLDER"] = folder
    if how == "birth":
        found = every_death_at_birth(Path(folder) / "cradle" / "state", variant, noise)
    else:
        make(path, variant, noise).close()
        rule = {"random": random_deaths, "every": every_death}[how]
        found = rule(path, int(count), int(seed))
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
