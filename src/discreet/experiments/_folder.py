"""A run's folder: finished cells on disk as soon as they are finished, and nobody else's files.

``run.json`` says what the folder is for. ``cells.jsonl`` has one line for each finished cell and
for each start of the command; lines are only ever appended, and a line is on the disk before the
next cell is counted. It knows nothing of what the cells mean.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import CorruptFileError, RunFolderError
from discreet.experiments._experiment import Finished, Task
from discreet.report._page import replace_file
from discreet.version import __version__

FORMAT = 1
MANIFEST, JOURNAL = "run.json", "cells.jsonl"
OTHER = "out"  # the parameter that names the folder


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a folder is for: the tasks, and the names under which a person asked for them."""

    name: str
    scale: str
    tasks: tuple[Task, ...]
    device: str = "cpu"

    def manifest(self) -> dict[str, Any]:
        """What has to agree for a run to be continued."""
        keys = "\n".join(sorted(task.key for task in self.tasks))
        device = {} if self.device == "cpu" else {"device": self.device}
        return {
            **device,
            "format": FORMAT,
            "discreet": __version__,
            "experiment": self.name,
            "scale": self.scale,
            "cells": len(self.tasks),
            "settings_sha256": hashlib.sha256(keys.encode()).hexdigest(),
        }


class RunFolder:
    """The journal of one run, open for reading what is there and appending to it."""

    def __init__(self, folder: Path, file: int, lines: Sequence[dict[str, Any]]) -> None:
        """Wrap an open, locked journal; use ``opened``."""
        self.folder = folder
        self._file = file
        self._finished: dict[str, Finished] = {}
        self._starts: list[dict[str, Any]] = []
        for line in lines:
            self._take(line)

    @property
    def finished(self) -> dict[str, Finished]:
        """Finished cells by key."""
        return dict(self._finished)

    @property
    def starts(self) -> list[dict[str, Any]]:
        """What was noted at each start of the command, the first one first."""
        return list(self._starts)

    def add(self, cell: Finished) -> None:
        """Append a finished cell to the journal."""
        self._append({"cell": cell.to_json()})

    def note_start(self, facts: dict[str, Any]) -> None:
        """Keep where and how the command was started."""
        self._append({"start": facts})

    def unwritable(self, error: OSError) -> RunFolderError:
        """What to say when a file of the run cannot be written, and what is safe."""
        kept = f"{len(self._finished)} finished cells are kept in {self.folder}"
        return RunFolderError(
            OTHER, f"cannot be written to ({error.strerror}); {kept}: make room and run again"
        )

    def _take(self, line: dict[str, Any]) -> None:
        if "cell" in line:
            cell = Finished.from_json(line["cell"])
            self._finished[cell.key] = cell
        else:
            self._starts.append(line["start"])

    def _append(self, line: dict[str, Any]) -> None:
        data = json.dumps(line, allow_nan=False).encode() + b"\n"
        before = os.lseek(self._file, 0, os.SEEK_END)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
            raise self.unwritable(error) from error
        self._take(line)


@contextmanager
def opened(folder: Path, plan: Plan) -> Iterator[RunFolder]:
    """Start or continue a run in a folder; refuse a folder that is not this run's."""
    _claim(folder, plan)
    file = os.open(folder / JOURNAL, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(file, folder)
        yield RunFolder(folder, file, _read(file, folder))
    finally:
        os.close(file)


def _claim(folder: Path, plan: Plan) -> None:
    manifest = plan.manifest()
    path = folder / MANIFEST
    if path.exists():
        _compare(folder, _load(path), manifest)
        return
    if folder.exists() and not folder.is_dir():
        raise RunFolderError(OTHER, f"{folder} is a file; give a folder")
    if folder.exists() and any(folder.iterdir()):
        raise RunFolderError(
            OTHER, f"{folder} holds files that are not from a run; give an empty or a new folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(manifest, indent=2).encode() + b"\n")


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CorruptFileError(OTHER, f"{path} cannot be read; give another folder")
    return found


def _compare(folder: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    if found == wanted:
        return
    what = f"{found.get('experiment')} at scale {found.get('scale')}"
    if found.get("discreet") != wanted["discreet"]:
        what += f" by discreet {found.get('discreet')}"
    elif what == f"{wanted['experiment']} at scale {wanted['scale']}":
        what += " with other settings"
    raise RunFolderError(OTHER, f"{folder} holds another run ({what}); give another folder")


def _lock(file: int, folder: Path) -> None:
    try:
        import fcntl  # noqa: PLC0415  # not everywhere; without it two runs have to take care
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise RunFolderError(
            OTHER, f"{folder} is being written to by another process; wait for it to end"
        ) from None


def _read(file: int, folder: Path) -> list[dict[str, Any]]:
    """All whole lines. What a crash left of a last one is cut off."""
    with os.fdopen(os.dup(file), "rb") as journal:
        journal.seek(0)
        data = journal.read()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.ftruncate(file, whole)
    lines = []
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            lines.append(json.loads(line))
        except ValueError:
            raise CorruptFileError(
                OTHER, f"line {number} of {folder / JOURNAL} cannot be read; delete that line"
            ) from None
    return lines
