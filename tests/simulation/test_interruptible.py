"""Compiled loops that an interrupt can end, and what comes of them when none comes."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet import UCB, Privacy
from discreet.baselines import LINEAR_BASELINES, RULES, linear_rule
from discreet.baselines.linear._arms_in_world import ArmsInWorld
from discreet.kernels import _fixed_pulls as fixed_pulls
from discreet.kernels import _random as random
from discreet.mechanism.variants import calibrate
from discreet.simulation import Simulation, run_seed
from discreet.simulation import _interruptible as interruptible
from discreet.simulation._simulate import play_on, streams
from discreet.simulation.environments import Basis, Fixed, Sphere, World

HORIZON = 2 * 10**8
FOR_EVER = 10**15  # rounds, which take years
ENDS = np.array([1, HORIZON])
PRIVACY = Privacy(epsilon=1.0, delta=1e-6)


class _Captured(Exception):  # noqa: N818  # no error
    pass


def _variant(name: str) -> Callable[[], object]:
    def play() -> object:
        environment = Sphere(dim=3, n_actions=5)
        mechanism = calibrate(name, environment.problem, horizon=HORIZON, privacy=PRIVACY)
        policy = None if name == "windows" else UCB()
        played = Simulation(
            environment=environment, mechanism=mechanism, rounds=HORIZON, policy=policy
        )
        return play_on(played, *_started(environment), ENDS)

    return play


def _linear(name: str) -> Callable[[], object]:
    def play() -> object:
        environment = Fixed(dim=3, n_actions=5)
        privacy = Privacy(epsilon=1.0, delta=1e-6, protects=LINEAR_BASELINES[name].protects)
        rule = linear_rule(name, problem=environment.problem, horizon=HORIZON, privacy=privacy)
        return rule.play(*_started(environment), ENDS, np.full(2, np.nan))

    return play


def _arms(name: str) -> Callable[[], object]:
    def play() -> object:
        environment = Basis(dim=3)
        epsilon = 1.0 if RULES[name].private else None
        rule = ArmsInWorld(name=name, problem=environment.problem, horizon=HORIZON, epsilon=epsilon)
        return rule.play(*_started(environment), ENDS, np.full(2, np.nan))

    return play


def _started(environment: Sphere | Fixed | Basis) -> tuple[World, Any, Any]:
    world, noise, draws = streams(0)
    return environment.start(world), random.seed_state(noise), random.seed_state(draws)


LOOPS = {
    "posterior": _variant("windows"),
    "width": _variant("tight"),
    "radius": _variant("gaussian"),
    "ridge": _linear("rare-switching"),
    "core set": _linear("core-set"),
    "upper confidence": _arms("dp-ucb"),
    "one pull at a time": _arms("kl-ucb"),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_a_loop_ends_when_its_checkpoints_are_moved(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured: dict[str, Any] = {}

    def capture(loop: object, *arguments: object, **ends: object) -> None:
        captured.update(loop=loop, arguments=arguments, **ends)
        raise _Captured

    monkeypatch.setattr(interruptible, "call", capture)
    with pytest.raises(_Captured):
        LOOPS[kind]()
    loop, arguments, records = captured["loop"], captured["arguments"], captured["records"]
    if loop is fixed_pulls.pull:
        arguments = (*arguments[:3], FOR_EVER, *arguments[4:])  # not just a phase
    checkpoints = np.array([1, FOR_EVER])
    records[:] = -1
    everything = (*arguments, checkpoints, records)
    loop.compile(tuple(loop.typeof_pyval(one) for one in everything))
    thread = threading.Thread(target=loop, args=everything, daemon=True)
    thread.start()
    while (records[0] == -1).any() and thread.is_alive():
        time.sleep(0.001)
    assert thread.is_alive()
    checkpoints[:] = 0
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("name", ["windows", "tight", "gaussian"])
def test_a_thread_of_its_own_changes_no_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Sphere(dim=3, n_actions=5)
    mechanism = calibrate(name, environment.problem, horizon=2000, privacy=PRIVACY)
    played = Simulation(environment=environment, mechanism=mechanism, rounds=2000)
    here = run_seed(played, 3)
    threads: list[str] = []
    run = interruptible._Played.run

    def noted(self: interruptible._Played) -> None:
        threads.append(threading.current_thread().name)
        run(self)

    monkeypatch.setattr(interruptible, "_LONG", 0)
    monkeypatch.setattr(interruptible._Played, "run", noted)
    np.testing.assert_array_equal(run_seed(played, 3), here)
    assert threads
    assert threading.main_thread().name not in threads


def test_an_error_in_the_thread_is_raised_where_it_is_waited_for() -> None:
    class Loop:
        typeof_pyval = staticmethod(type)

        def compile(self, _: object) -> None:
            pass

        def __call__(self, *_: object) -> None:
            raise MemoryError

    with pytest.raises(MemoryError):
        interruptible.call(Loop(), rounds=10**9, checkpoints=ENDS, records=np.empty(2))
