# ruff: noqa: ANN001, ANN002, ANN003, ANN202, ANN204, ARG002  # wraps what others wrote
"""Runs inside the processes of a service under test, which find it on their PYTHONPATH.

DISCREET_CHAOS_RECORD  a file: every row that the writer is about to learn is noted there, with its
                       number, so that a test sees which event became which row
DISCREET_CHAOS_MUTANT  what the writer does wrong: the tests have to find it out. Each time that it
                       did is a byte more in a file beside the record
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


def _append(place, text):
    file = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, text.encode())
    os.close(file)


def _struck():
    _append(os.environ["DISCREET_CHAOS_RECORD"] + ".strikes", "x")


def _recording(module):
    place = os.environ["DISCREET_CHAOS_RECORD"]
    plain = module.LinUCB.observe

    def observe(self, actions, rewards, **more):
        rows = [[float(one) for one in row] for row in actions]
        _append(place, "\n" + json.dumps([self.rows, rows, [float(one) for one in rewards]]))
        return plain(self, actions, rewards, **more)

    module.LinUCB.observe = observe


def _learning(module, kind):
    plain, calls = module.LinUCB.observe, [0]

    def observe(self, actions, rewards, **more):
        turned = [*rewards[1:], *rewards[:1]]
        matters = [*turned] != [*rewards] if kind == "swaps" else any(any(row) for row in actions)
        calls[0] += matters
        strikes = matters and calls[0] % 3 == 2
        if kind == "swaps" and strikes:
            rewards = turned
        if kind == "zeroes" and strikes:
            actions = [[0.0] * len(row) for row in actions]
            rewards = [0.5] * len(rewards)
        plain(self, actions, rewards, **more)
        if kind == "doubles" and strikes:
            plain(self, actions, rewards, **more)
        if strikes:
            _struck()

    module.LinUCB.observe = observe


def _acknowledging(module, kind):
    name = {"hasty": "record", "deaf": "reward"}[kind]
    plain, calls = getattr(module, name), [0]

    class Aside:
        """A connection on which nothing is written."""

        def __init__(self, connection):
            self._connection, self.written = connection, False

        def execute(self, query, values=()):
            if query.startswith("SELECT"):
                return self._connection.execute(query, values)
            self.written = True
            return []

        def _nothing(self, *arguments):
            self.written = True

        many = insert = _nothing

    def changed(connection, *arguments, **more):
        calls[0] += 1
        if calls[0] % 10 != 5:
            return plain(connection, *arguments, **more)
        aside = Aside(connection)
        found = plain(aside, *arguments, **more)
        if aside.written:
            _struck()
        return found

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
