# ruff: noqa: ANN001, ANN002, ANN003, ANN202, ANN204, ARG002, ARG005  # wraps what others wrote
"""Runs inside the processes of a service under test, which find it on their PYTHONPATH.

DISCREET_CHAOS_RECORD  a file: every row that the writer is about to learn is noted there, with its
                       number, so that a test sees which event became which row
DISCREET_CHAOS_MUTANT  what the writer does wrong: the tests have to find it out
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys


class _After(importlib.abc.MetaPathFinder):
    """Changes one module right after it was imported."""

    def __init__(self, name, change):
        self._name, self._change = name, change

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def changed(module):
            run(module)
            self._change(module)

        spec.loader.exec_module = changed
        return spec


def _recording(module):
    place = os.environ["DISCREET_CHAOS_RECORD"]
    plain = module.LinUCB.observe

    def observe(self, actions, rewards, **more):
        rows = [[float(one) for one in row] for row in actions]
        line = "\n" + json.dumps([self.rows, rows, [float(one) for one in rewards]])
        file = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line.encode())
        os.close(file)
        return plain(self, actions, rewards, **more)

    module.LinUCB.observe = observe


def _learning(module, kind):
    plain, calls = module.LinUCB.observe, [0]

    def observe(self, actions, rewards, **more):
        calls[0] += 1
        strikes = calls[0] % 5 == 3
        if kind == "swaps" and strikes and len(rewards) > 1:
            rewards = [*rewards[1:], rewards[0]]
        if kind == "zeroes" and strikes:
            actions = [[0.0] * len(row) for row in actions]
            rewards = [0.5] * len(rewards)
        plain(self, actions, rewards, **more)
        if kind == "doubles" and strikes:
            plain(self, actions, rewards, **more)

    module.LinUCB.observe = observe


def _acknowledging(module, kind):
    name = {"hasty": "record", "deaf": "reward"}[kind]
    plain, calls = getattr(module, name), [0]

    class Aside:
        """A connection on which nothing is written."""

        def __init__(self, connection):
            self.execute = lambda query, values=(): (
                connection.execute(query, values) if query.startswith("SELECT") else []
            )
            self.many = lambda query, values: None
            self.insert = lambda table, columns, rows: None

    def changed(connection, *arguments, **more):
        calls[0] += 1
        used = Aside(connection) if calls[0] % 10 == 5 else connection
        return plain(used, *arguments, **more)

    setattr(module, name, changed)


_MUTANTS = {
    "doubles": ("discreet.learner", _learning),
    "swaps": ("discreet.learner", _learning),
    "zeroes": ("discreet.learner", _learning),
    "hasty": ("discreet.service._events", _acknowledging),
    "deaf": ("discreet.service._events", _acknowledging),
}
if "DISCREET_CHAOS_RECORD" in os.environ:
    sys.meta_path.insert(0, _After("discreet.learner", _recording))
if "DISCREET_CHAOS_MUTANT" in os.environ:
    _kind = os.environ["DISCREET_CHAOS_MUTANT"]
    _where, _how = _MUTANTS[_kind]
    sys.meta_path.insert(0, _After(_where, lambda module: _how(module, _kind)))
