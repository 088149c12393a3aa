"""What the tests of kept learners need: small ledgers and bodies, and what files hold."""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from discreet.curator.growing import GrowingLedger
from discreet.curator.keeping import Keeper

CARD = {"variant": "tight", "epsilon": 1.0, "mu": 0.25}
BODY = {"policy": None, "state": {"rows": 0, "sums": [1.5, -2.0]}}


def sha(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


def begun(path: Path, records: int = 0, releases: int = 0) -> tuple[Keeper, GrowingLedger]:
    """A kept learner after some calls."""
    ledger = GrowingLedger(CARD)
    keeper = Keeper.create(path, BODY, ledger)
    for number in range(1, records + 1):
        keeper.record({"n": number})
        keeper.settle()
    for number in range(1, releases + 1):
        keeper.note(ledger.append(number, number, sha(number)))
    return keeper, ledger


def on_disk(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """What a new process would find: body, records and the number of releases."""
    keeper, body, records, ledger = Keeper.open(path)
    keeper.close()
    return body, records, len(ledger)


def contents(folder: Path) -> dict[str, bytes]:
    """All files but locks."""
    return {
        place.name: place.read_bytes()
        for place in sorted(folder.iterdir())
        if place.suffix != ".lock"
    }


class Interrupting:
    """Raises KeyboardInterrupt at the n-th instruction inside some modules."""

    def __init__(self, at: int, modules: Iterable[ModuleType]) -> None:
        self._left = at
        self._files = {module.__file__ for module in modules}

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401
        if frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._left -= 1
            if self._left == 0:
                raise KeyboardInterrupt
        return self._trace
