"""An interrupt (Ctrl-C) may come at any moment, also while a compiled function returns.

When a compiled function returns a NamedTuple to Python, its class is called on the way out, and an
exception raised there by a signal handler crashes the interpreter. So no kernel that Python may
call returns one.
"""

import importlib
import pkgutil
import subprocess
import sys
import typing
from types import ModuleType

import pytest
from numba.core.registry import CPUDispatcher

from discreet import kernels


def modules() -> list[ModuleType]:
    names = (found.name for found in pkgutil.iter_modules(kernels.__path__))
    return [importlib.import_module(f"{kernels.__name__}.{name}") for name in names]


def compiled(module: ModuleType) -> dict[str, CPUDispatcher]:
    """The compiled functions that are defined in a module."""
    found = {name: value for name, value in vars(module).items() if hasattr(value, "py_func")}
    return {name: f for name, f in found.items() if f.py_func.__module__ == module.__name__}


def returns_a_named_tuple(function: CPUDispatcher) -> bool:
    returned = typing.get_type_hints(function.py_func)["return"]
    parts = (returned, *typing.get_args(returned))
    return any(isinstance(part, type) and hasattr(part, "_fields") for part in parts)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_no_kernel_that_python_may_call_returns_a_named_tuple(module: ModuleType) -> None:
    # What a leading underscore marks is called by kernels of its own module only.
    fatal = [name for name, f in compiled(module).items() if returns_a_named_tuple(f)]
    assert all(name.startswith("_") for name in fatal)


def test_a_kernel_that_returns_a_named_tuple_is_found() -> None:
    found = [name for module in modules() for name, f in compiled(module).items()]
    assert len(found) > 50
    width = importlib.import_module("discreet.kernels._width")
    assert returns_a_named_tuple(compiled(width)["_noise_at"])


PROGRAM = """
import signal, sys
from dataclasses import replace
import numpy as np
import discreet
from discreet.release.policies import UCB

class Interrupted(Exception):
    pass

def interrupt(*_):
    raise Interrupted

problem = discreet.Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
privacy = discreet.Privacy(epsilon=1.0, delta=1e-6)
bandit = discreet.LinUCB(problem, horizon=10**4, privacy=privacy)
actions = np.eye(3)
while bandit.release.number < 2:
    bandit.learn(bandit.choose(actions), 0.5)
policy, known = bandit.policy, bandit.release
policy.choose(known, actions)
UCB().choose(known, actions)


signal.signal(signal.SIGALRM, interrupt)
waits = np.random.default_rng(0).uniform(1e-6, 1.2e-4, size=int(sys.argv[1]))
for wait in waits:
    try:
        signal.setitimer(signal.ITIMER_REAL, wait)
        while True:
            # A copy: what was worked out of a release is remembered with it.
            fresh = replace(known)
            policy.choose(fresh, actions)
            UCB().choose(fresh, actions)
    except Interrupted:
        pass
print(len(waits), "interrupts")
"""


def test_thousands_of_interrupts_do_not_crash_the_interpreter() -> None:
    # With a kernel that returns a NamedTuple this has crashed within the first few thousand.
    command = [sys.executable, "-X", "faulthandler", "-c", PROGRAM, "10000"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.split() == ["10000", "interrupts"]
