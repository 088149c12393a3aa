"""How the command line reads its options."""

from pathlib import Path

import pytest
import typer

from discreet.cli import _options


@pytest.mark.parametrize("given", ["demo", Path("demo")])
def test_a_path_may_be_typed_or_a_default(given: str | Path) -> None:
    assert _options.path(given) == Path("demo")


@pytest.mark.parametrize("given", ["", "a\0b"])
def test_what_is_no_path_is_refused(given: str) -> None:
    with pytest.raises(typer.BadParameter):
        _options.path(given)
