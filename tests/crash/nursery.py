"""Children that use a kept learner and die in the middle. Run as a script: see test_crash.py.

A child says on a pipe what was acknowledged to it, one JSON line after each call that returned.
After its death the learner is loaded again and everything acknowledged has to be there, with the
same noise.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.mechanism.schedules import batches
from discreet.release.ledger import Ledger, fingerprint

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)
VARIANTS: dict[str, Any] = {
    "tight": discreet.VARIANTS["tight"].with_schedule(batches(3)),
    "gaussian": discreet.VARIANTS["gaussian"],
    "wishart": discreet.VARIANTS["wishart"],
    "nonprivate": discreet.VARIANTS["nonprivate"],
}


def make(path: Path, variant: str, noise: str) -> None:
    """A learner kept at a path, closed."""
    privacy = None if variant == "nonprivate" else TARGET
    discreet.LinUCB(
        PROBLEM,
        horizon=10**6,
        privacy=privacy,
        variant=VARIANTS[variant],
        noise=noise,
        path=path,
    ).close()


def digest(learner: discreet.LinUCB) -> str:
    """Of everything that is held: sums with their noise, and what waits."""
    state = learner._curator._state
    found = hashlib.sha256()
    for name, part in sorted(state.sums.state().items()):
        found.update(name.encode())
        found.update(repr(part.tolist()).encode())
    found.update(repr(sorted(state.waiting._actions)).encode())
    found.update(repr(state.counters()).encode())
    return found.hexdigest()


def facts(learner: discreet.LinUCB) -> dict[str, Any]:
    release = learner.release
    return {
        "rows": learner.rows,
        "rounds": learner.rounds,
        "state": digest(learner),
        "number": release.number,
        "sha256": fingerprint(release),
    }


def use(path: Path, say: Callable[[dict[str, Any]], None], seed: int, calls: int) -> None:
    """Load the learner and use it, saying after each call what it led to."""
    rng = random.Random(seed)
    learner = discreet.load(path)
    waiting: list[str] = []
    say(facts(learner))
    for _ in range(calls):
        roll = rng.random()
        if roll < 0.06:
            learner.save()
        elif roll < 0.5 or not waiting:
            angle = rng.uniform(0, 6.28)
            action = [[np.cos(angle) * 0.9, np.sin(angle) * 0.9]]
            waiting.append(learner.choose(action).id)
        elif roll < 0.56:
            learner.forget(waiting.pop(rng.randrange(len(waiting))))
        else:
            learner.learn(waiting.pop(rng.randrange(len(waiting))), rng.uniform(-1, 1))
        say({**facts(learner), "waiting": waiting})


class Truth:
    """What has been acknowledged and shown so far, over all lives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shown: dict[int, str] = {}
        self.restored = {"exactly": 0, "one call further": 0}

    def check(self, heard: list[dict[str, Any]]) -> None:
        """Load the learner after a death, twice, and compare with what was acknowledged."""
        for fact in heard:
            self._show(fact["number"], fact["sha256"])
        learner = discreet.load(self.path)
        found = facts(learner)
        self._show(found["number"], found["sha256"])
        if heard:
            last = heard[-1]
            if found["state"] == last["state"]:
                self.restored["exactly"] += 1
            else:  # the call in which it died had been written down
                self.restored["one call further"] += 1
                moves = (found["rows"] - last["rows"], found["rounds"] - last["rounds"])
                assert moves in {(0, 0), (0, 1), (1, 0)}, "an acknowledged call was lost"
            held = set(learner._curator._state.waiting._actions)
            lost = [one for one in last.get("waiting", []) if one not in held]
            assert len(lost) <= 1, "an acknowledged decision was lost"
        self._check_ledger(learner)
        del learner
        again = discreet.load(self.path)
        assert facts(again) == found, "a second load is another learner"
        again.close()

    def _show(self, number: int, sha256: str) -> None:
        if number:
            assert self.shown.setdefault(number, sha256) == sha256, f"release {number} made twice"

    def _check_ledger(self, learner: discreet.LinUCB) -> None:
        contents = self.path.with_name(f"{self.path.name}.ledger").read_bytes()
        ledger = Ledger.parse(contents)
        assert len(ledger) == learner.release.number
        for number, sha256 in self.shown.items():
            assert ledger.entries[number - 1].sha256 == sha256, "the ledger has another release"


def life(
    path: Path,
    seed: int,
    calls: int,
    *,
    trap: Callable[[], object] = lambda: None,
    doom: Callable[[int], object] = lambda child: child,
) -> list[dict[str, Any]]:
    """Fork a child that uses the learner, and let it die; what it said before."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    speak = os.write  # before it is trapped
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            trap()
            use(path, lambda fact: speak(writing, json.dumps(fact).encode() + b"\n"), seed, calls)
        finally:
            os._exit(0)
    os.close(writing)
    doom(child)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return [json.loads(line) for line in pipe.read().split(b"\n")[:-1]]


def random_deaths(path: Path, kills: int, seed: int) -> dict[str, int]:
    """SIGKILL at random instants, from the first moment of loading on."""
    rng = random.Random(seed)
    truth = Truth(path)
    for kill in range(kills):

        def doom(child: int) -> None:
            time.sleep(rng.choice((0.01, 0.05, 0.15)) * rng.random())
            os.kill(child, signal.SIGKILL)

        truth.check(life(path, seed + kill, 1000, doom=doom))
    return {**truth.restored, "releases": len(truth.shown)}


class Trap:
    """Kills the process at the n-th call that changes a file: before it, half-way, or after it."""

    NAMES = ("write", "fsync", "replace", "ftruncate", "open", "unlink")

    def __init__(self, deadly: int | None, when: str) -> None:
        self.calls = 0
        self.deadly = deadly
        self.when = when
        for name in self.NAMES:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401  # any call
            self.calls += 1
            if self.calls != self.deadly:
                return real(*args, **options)
            if self.when == "half" and name == "write":
                real(args[0], args[1][: len(args[1]) // 2])
            elif self.when == "after":
                real(*args, **options)
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        return call


def every_death(path: Path, calls: int, seed: int) -> dict[str, int]:
    """Die at every single call that touches a file, in each of three ways, from one state."""
    truth = Truth(path)
    points = 0
    for when in ("before", "half", "after"):
        deadly = 1
        while True:
            trap = partial(Trap, deadly, when)
            heard = life(path, seed + deadly, calls, trap=trap)
            truth.check(heard)
            if len(heard) > calls:  # it came through: there is no such call
                break
            points += 1
            deadly += 1
    return {**truth.restored, "points": points, "releases": len(truth.shown)}


def main() -> None:
    folder, variant, noise, how, count, seed = sys.argv[1:]
    path = Path(folder) / "state"
    make(path, variant, noise)
    rule = {"random": random_deaths, "every": every_death}[how]
    print(json.dumps(rule(path, int(count), int(seed))))  # noqa: T201


if __name__ == "__main__":
    main()
