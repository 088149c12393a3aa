"""Write docs/api.md: every public name with the first sentence that its docstring says.

Run `make api`, which also writes docs/reference/cli.md and docs/reference/http.md. What is public
is what ``__all__`` of a public module says.
"""

import ast
import importlib
import inspect
from itertools import pairwise
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).with_name("api.md")
MODULES = {
    "discreet": "What most people need.",
    "discreet.errors": "Everything that is refused.",
    "discreet.features": "Contexts and actions as bounded rows.",
    "discreet.variants": "The table of variants, and how to exchange their parts.",
    "discreet.schedules": "When to release.",
    "discreet.strategies": "How noise is shared between releases.",
    "discreet.mechanism": "What noise a learner has, as data.",
    "discreet.mechanism.noise.sources": "Where random numbers come from.",
    "discreet.accounting": "How much noise a target needs.",
    "discreet.theory": "Regret bounds.",
    "discreet.release.posterior": "What a release says about the parameter: a model.",
    "discreet.release.confidence": "What a release is proven to say about the parameter.",
    "discreet.release.policies": "How a release becomes a choice.",
    "discreet.release.ledger": "All releases of a learner.",
    "discreet.simulation": "Many rounds in synthetic worlds.",
    "discreet.environments": "The synthetic worlds.",
    "discreet.budget": "A budget that several learners share.",
    "discreet.evaluation": "Values of policies from logged rounds, exact and private.",
    "discreet.replay": "A private warm start from a log, and what it is worth.",
    "discreet.client": "A client of the service.",
    "discreet.baselines": "Private multi-armed bandits.",
    "discreet.baselines.standard": "Learners under standard privacy, not joint.",
    "discreet.audit": "Attacks on a guarantee.",
}
SHORTCUTS = {
    "discreet.variants": "discreet.mechanism.variants",
    "discreet.schedules": "discreet.mechanism.schedules",
    "discreet.strategies": "discreet.mechanism.strategies",
    "discreet.environments": "discreet.simulation.environments",
}

_HEAD = """# The public names

Made from the docstrings by `make api`; `help(discreet.LinUCB)` and the like say more. Names and
modules with a leading underscore, `discreet.curator`, `discreet.kernels`, `discreet.experiments`
and `discreet.report` are not for users and may change without notice.
"""


def first_sentence(name: str, value: object) -> str:
    """What is said first of a name: in its docstring, or below it if it is a constant."""
    value = inspect.unwrap(value) if callable(value) else value
    if inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value):
        text = inspect.getdoc(value) or ""
    else:
        text = below_constant(name, value)
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def below_constant(name: str, value: object) -> str:
    """The text below a constant in the public module that defines it; nothing if there is none."""
    for one in MODULES:
        module = importlib.import_module(SHORTCUTS.get(one, one))
        if getattr(module, name, None) is value and name in (said := texts_below(module)):
            return said[name]
    return ""


def texts_below(module: ModuleType) -> dict[str, str]:
    """The texts that follow a module's constants, by the constants' names."""
    found = {}
    for above, below in pairwise(ast.parse(inspect.getsource(module)).body):
        match above, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = text
    return found


def section(name: str, about: str) -> str:
    """A module's names as a table."""
    module = importlib.import_module(SHORTCUTS.get(name, name))
    names = sorted(one for one in module.__all__ if not one.startswith("_"))
    rows = [f"| `{one}` | {first_sentence(one, getattr(module, one))} |" for one in names]
    return "\n".join(
        [f"## `{name}`", "", about, "", "| name | what it is |", "|---|---|", *rows, ""]
    )


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(section(name, about) for name, about in MODULES.items())])


def home(name: str) -> str:
    """The first public module that lists a name: the one whose page describes it."""
    module, _, last = name.rpartition(".")
    value = getattr(importlib.import_module(SHORTCUTS.get(module, module)), last)
    for one in MODULES:
        other = importlib.import_module(SHORTCUTS.get(one, one))
        if last in other.__all__ and getattr(other, last) is value:
            return one
    return module


def reference_page(name: str, about: str) -> str:
    """The page of a module for the site: a directive of mkdocstrings for each public name."""
    real = SHORTCUTS.get(name, name)
    module = importlib.import_module(real)
    parts = [f"# `{name}`", about]
    if real != name:
        parts.append(f"`{name}` is short for `{real}`.")
    for one in sorted(each for each in module.__all__ if not each.startswith("_")):
        first = home(f"{name}.{one}")
        if first == name:
            parts.append(f"::: {real}.{one}")
        else:
            parts.append(f"## {one}\n\nSee [`{first}.{one}`]({first}.md).")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
