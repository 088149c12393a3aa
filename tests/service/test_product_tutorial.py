"""The tutorial of a product is true: its blocks run against a service, and print what it says."""

from pathlib import Path

import pytest
from running import ADMINISTRATOR, running

from test_docs import PRODUCT, blocks, promised_output, words


def test_the_tutorial_of_a_product_runs_against_a_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    said = promised_output(PRODUCT)
    assert len(said) == 2
    with running(tmp_path) as address:
        for number, block in enumerate(blocks(PRODUCT, "python"), start=1):
            here = block.replace("http://localhost:8080", address)
            here = here.replace("choose-a-long-one", ADMINISTRATOR)
            capsys.readouterr()
            exec(compile(here, f"{PRODUCT.name}, block {number}", "exec"), names)  # noqa: S102
            printed = capsys.readouterr().out
            if block in said:
                assert words(printed) == words(said[block])
        assert names["verdict"].verdict == "accepted"  # type: ignore[attr-defined]
        assert names["found"].events == 1  # type: ignore[attr-defined]
        for client in ("client", "web"):
            names[client].close()  # type: ignore[attr-defined]
