"""Public names say what they take, give and refuse, with examples that run."""

import ast
import doctest
import importlib
import inspect
import textwrap
from pathlib import Path
from types import FunctionType

import pytest

import discreet
from discreet import errors

NAMES = [
    name
    for name in discreet.__all__
    if inspect.isclass(getattr(discreet, name)) or inspect.isfunction(getattr(discreet, name))
]


def methods(cls: type) -> list[tuple[str, FunctionType]]:
    """The public functions that a class itself defines."""
    own = [(name, inspect.unwrap(getattr(cls, name))) for name in vars(cls) if name[0] != "_"]
    return [(name, one) for name, one in own if inspect.isfunction(one) or inspect.ismethod(one)]


def callables(name: str) -> list[tuple[str, FunctionType]]:
    value = getattr(discreet, name)
    if inspect.isclass(value):
        return [(f"{name}.{one}", function) for one, function in methods(value)]
    return [(name, value)]


CALLABLES = [one for name in NAMES for one in callables(name)]


def raised(function: FunctionType) -> set[str]:
    """The package's errors that a function's own text raises by name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    names = [one.func if isinstance(one, ast.Call) else one for one in calls]
    found = {one.id for one in names if isinstance(one, ast.Name)}
    return found & set(errors.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example_that_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value = getattr(discreet, name)
    home = vars(importlib.import_module(value.__module__))
    (found,) = doctest.DocTestFinder(recurse=False).find(value, name, globs=dict(home))
    assert found.examples
    flags = doctest.NORMALIZE_WHITESPACE
    done = doctest.DocTestRunner(optionflags=flags).run(found)
    assert done.failed == 0


@pytest.mark.parametrize(("name", "function"), CALLABLES, ids=[name for name, _ in CALLABLES])
def test_every_public_function_says_what_it_takes_gives_and_refuses(
    name: str, function: FunctionType
) -> None:
    text = inspect.getdoc(function) or ""
    taken = [
        one
        for one in inspect.signature(function).parameters
        if one not in {"self", "cls"} and one[0] != "_"
    ]
    if taken:
        assert "Args:" in text, name
        for one in taken:
            assert f"    {one}:" in text or f", {one}" in text, f"{name} does not say what {one} is"
        if function.__annotations__.get("return") not in {None, "None"}:
            assert "Returns:" in text or "Yields:" in text, name
    for error in raised(function):
        assert error in text, f"{name} does not say that it raises {error}"


def test_a_class_that_is_made_says_what_it_is_made_of() -> None:
    for name in NAMES:
        value = getattr(discreet, name)
        if inspect.isclass(value) and value is not discreet.View:  # open_read_only makes those
            text = inspect.getdoc(value) or ""
            assert "Args:" in text or "Attributes:" in text, name
