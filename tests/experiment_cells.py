"""Cells for tests, in a module of their own so that workers can import them."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.experiments._experiment import Cell, Reading, Task
from discreet.experiments._folder import Plan


@dataclass(frozen=True, kw_only=True)
class Square:
    """Three readings that follow from the seed."""

    seed: int
    factor: float = 0.1

    def prepare(self) -> None:
        """Nothing to compile."""

    def run(self) -> list[Reading]:
        return [Reading("square", at, self.factor * self.seed**2 * at) for at in (1, 2, 3)]


@dataclass(frozen=True, kw_only=True)
class Fragile(Square):
    """The same, but the worker of one seed dies, as often as ``deaths`` says."""

    folder: str
    victim: int = 2
    deaths: int = 1

    def run(self) -> list[Reading]:
        with (Path(self.folder) / f"runs-{self.seed}").open("a") as log:
            log.write("x")
        if self.seed == self.victim and self.times() <= self.deaths:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        return super().run()

    def times(self) -> int:
        """How often this cell was begun."""
        return len((Path(self.folder) / f"runs-{self.seed}").read_text())


@dataclass(frozen=True, kw_only=True)
class Failing(Square):
    """One that raises an error that does not survive pickling."""

    def run(self) -> list[Reading]:
        raise AwkwardError("one", "two")


class AwkwardError(Exception):
    """Cannot be pickled: it needs two arguments and passes one on."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def plan_of(cells: Sequence[Cell], *, name: str = "test", scale: str = "smoke") -> Plan:
    return Plan(name=name, scale=scale, tasks=tuple(Task(name, cell) for cell in cells))
