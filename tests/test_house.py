"""The house: how much of it is public, and how many rooms one row passes through."""

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import FrameType

import numpy as np

import discreet

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "discreet"
MOST_PUBLIC_NAMES = 200
MOST_MODULES_OF_LEARN = 5
BARE = re.compile(r"# ?(noqa(: ?[A-Z0-9, ]+)?|type: ?ignore(\[[^]]*\])?) *$", re.MULTILINE)


def private(path: Path) -> bool:
    """Whether a module, or a folder above it, has a leading underscore."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return any(part.startswith("_") and part not in {"__init__", "__main__"} for part in parts)


def assigned(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top of a module defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return set()
    return {node.id for one in targets for node in ast.walk(one) if isinstance(node, ast.Name)}


def public_names() -> set[str]:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if private(path):
            continue
        names = set().union(*map(assigned, ast.parse(path.read_text("utf-8")).body))
        where = path.relative_to(PACKAGE)
        found |= {f"{where}:{name}" for name in names if not name.startswith("_")}
    return found


def test_the_public_names_can_be_read_in_a_sitting() -> None:
    names = public_names()
    assert "learner.py:LinUCB" in names
    assert len(names) <= MOST_PUBLIC_NAMES, sorted(names)


def modules_of(call: object, *arguments: object) -> set[str]:
    """The package's modules in which some function ran during a call."""
    seen = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("discreet"):
            seen.add(name)

    sys.setprofile(look)
    try:
        call(*arguments)  # type: ignore[operator]
    finally:
        sys.setprofile(None)
    return seen


def test_a_row_of_a_stored_learner_passes_through_the_modules_that_the_docs_name(
    tmp_path: Path,
) -> None:
    problem = discreet.Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
    privacy = discreet.Privacy(epsilon=1.0, delta=1e-6)
    with discreet.LinUCB(problem, horizon=100, privacy=privacy, path=tmp_path / "one") as bandit:
        decisions = [bandit.choose(np.eye(3)) for _ in range(2)]
        bandit.learn(decisions[0], 0.5)  # compiles
        seen = modules_of(bandit.learn, decisions[1], 0.5)
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    steps = text.partition("<!-- modules of learn -->")[2].partition("<!-- end -->")[0]
    assert seen == set(re.findall(r"^\d+\. `(discreet[\w.]+)`", steps, re.MULTILINE))
    assert len(seen) <= MOST_MODULES_OF_LEARN


def test_the_page_of_public_names_is_what_the_modules_say() -> None:
    source = ROOT / "docs" / "make_api.py"
    spec = importlib.util.spec_from_file_location("make_api", source)
    assert spec is not None
    assert spec.loader is not None
    make_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_api)
    assert make_api.PAGE.read_text("utf-8") == make_api.page(), "run `make api`"
    for name in discreet._MODULES:
        assert f"discreet.{name}" in make_api.MODULES


def test_the_files_and_folders_in_the_tables_of_the_architecture_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    for section in text.split("\n## "):
        home = PACKAGE / "service" if section.startswith("The service\n") else PACKAGE
        table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
        for place in re.findall(r"`([\w/]+(?:\.py|/))`", table):
            path = home / place
            assert path.is_dir() if place.endswith("/") else path.is_file(), place


def test_each_module_of_the_service_is_kept_from_the_learner_or_is_the_writers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    contracts = {one["name"]: one for one in settings["contracts"]}
    kept_away = set(contracts["Only the writer's process touches a learner"]["source_modules"])
    home = PACKAGE / "service"
    modules = {path.stem for path in home.glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in home.glob("*/__init__.py")}
    writers = {"_joiner", "_run", "_writer"}  # _run starts the writer
    assert kept_away == {f"discreet.service.{name}" for name in (modules | folders) - writers}


def test_every_ignored_rule_says_why_beside_it() -> None:
    assert BARE.search("import this  # noqa: F401\nimport that")
    assert BARE.search("import this  # type: ignore[import-untyped]  # noqa: F401")
    assert not BARE.search("import this  # noqa: F401, E402  # for its poem")
    bare = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in PACKAGE.rglob("*.py")
        for found in BARE.finditer(path.read_text("utf-8"))
    ]
    assert bare == []
