"""Public names say what they take, give and refuse, with examples that run."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import re
import textwrap
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import discreet
from discreet import errors

NAMES = [
    name
    for name in discreet.__all__
    if inspect.isclass(getattr(discreet, name)) or inspect.isfunction(getattr(discreet, name))
]


def make_api() -> ModuleType:
    """The script that knows the public modules."""
    source = Path(__file__).parents[1] / "docs" / "make_api.py"
    spec = importlib.util.spec_from_file_location("make_api", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def methods(cls: type) -> dict[str, FunctionType]:
    """The public functions of a class, with those that it inherits within the package."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] == "discreet":
            own = [(name, inspect.unwrap(getattr(base, name))) for name in vars(base)]
            found |= {
                name: getattr(one, "__func__", one)
                for name, one in own
                if name[0] != "_" and (inspect.isfunction(one) or inspect.ismethod(one))
            }
    return found


def callables(name: str, value: object) -> dict[str, FunctionType]:
    if inspect.isclass(value):
        return {f"{name}.{one}": function for one, function in methods(value).items()}
    value = inspect.unwrap(value) if callable(value) else value
    return {name: value} if inspect.isfunction(value) else {}


def listed() -> dict[str, FunctionType]:
    """Every function and method of the names that docs/api.md lists, each once."""
    api = make_api()
    found: dict[FunctionType, str] = {}
    for name in api.MODULES:
        module = importlib.import_module(api.SHORTCUTS.get(name, name))
        for one in module.__all__:
            for called, function in callables(one, getattr(module, one)).items():
                found.setdefault(function, called if name == "discreet" else f"{name}.{called}")
    return {name: function for function, name in found.items()}


LISTED = listed()
FIRST = {one for name in NAMES for one in callables(name, getattr(discreet, name))}


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


def described(one: str, text: str) -> bool:
    """Whether a line of a docstring's list says what a parameter is, alone or with others."""
    return bool(re.search(rf"^    (\w+, )*{one}(, \w+)*: ", text, re.MULTILINE))


@pytest.mark.parametrize("name", LISTED)
def test_every_public_function_says_what_it_takes_gives_and_refuses(name: str) -> None:
    function = LISTED[name]
    text = inspect.getdoc(function) or ""
    taken = [
        one
        for one in inspect.signature(function).parameters
        if one not in {"self", "cls"} and one[0] != "_"
    ]
    if len(taken) > 1 or (taken and name in FIRST):
        assert "Args:" in text, name
        for one in taken:
            assert described(one, text), f"{name} does not say what {one} is"
        if function.__annotations__.get("return") not in {None, "None"}:
            assert "Returns:" in text or "Yields:" in text, name
        assert "checks." not in inspect.getsource(function) or "Raises:" in text, name
    for error in raised(function):
        assert "Raises:" in text, name
        assert error in text, f"{name} does not say that it raises {error}"


def test_a_class_that_is_made_says_what_it_is_made_of() -> None:
    for name in NAMES:
        value = getattr(discreet, name)
        if inspect.isclass(value) and value is not discreet.View:  # open_read_only makes those
            text = inspect.getdoc(value) or ""
            assert "Args:" in text or "Attributes:" in text, name
