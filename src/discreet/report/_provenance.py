"""Where a result comes from: what ran, when, for how long, on what. Knows nothing of the result."""

import os
import platform
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any

from discreet.report._page import Facts
from discreet.version import __version__


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What a reader needs to run the same thing again.

    Attributes:
        command: how to run it again.
        started: when it began, with its time zone.
        seconds: wall-clock time from start to end.
        workers: processes that shared the work.
        cores: processors of the machine.
        platform: system and architecture.
        versions: of discreet, Python and the libraries that the numbers depend on.
    """

    command: str
    started: datetime
    seconds: float
    workers: int
    cores: int
    platform: str
    versions: dict[str, str]

    @classmethod
    def gathered(
        cls, *, command: str, started: datetime, seconds: float, workers: int
    ) -> "Provenance":
        """For work done by this process on this machine."""
        libraries = {name: version(name) for name in ("numpy", "numba", "scipy")}
        return cls(
            command=command,
            started=started,
            seconds=seconds,
            workers=workers,
            cores=os.cpu_count() or 1,
            platform=f"{platform.system()} {platform.machine()}",
            versions={
                "discreet": __version__,
                "python": platform.python_version(),
                **libraries,
            },
        )

    def to_json(self) -> dict[str, Any]:
        """All fields, the time as text."""
        return {**asdict(self), "started": self.started.isoformat(timespec="seconds")}

    def facts(self, *more: tuple[str, str]) -> Facts:
        """For the foot of a page, after what the page has to say itself."""
        workers = f"{self.workers} worker process{'' if self.workers == 1 else 'es'}"
        return Facts(
            (
                ("run it again", self.command),
                *more,
                ("started", f"{self.started:%Y-%m-%d %H:%M} {self.started.tzname()}"),
                ("took", f"{self.seconds:.0f} seconds on {workers}"),
                ("machine", f"{self.cores} cores, {self.platform}"),
                ("versions", ", ".join(f"{name} {text}" for name, text in self.versions.items())),
            )
        )
