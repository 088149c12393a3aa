"""What was shown, remembered outside of the data: so that a restored backup is found out.

A backup that is restored brings back an older learner together with its ledger, and nothing in it
knows of what was released since. A witness is a folder that is *not* restored with it. For each
bandit it holds the head of the learner's ledger and how many rows the learner had.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import NamedTuple


class Testimony(NamedTuple):
    """What is remembered of a bandit.

    Attributes:
        learner: the learner's id.
        releases: how many there had been.
        head: the head of its ledger then.
        rows: how many rows it had at least.
    """

    learner: str
    releases: int
    head: str
    rows: int


class Witness:
    """A folder with a file for each bandit."""

    def __init__(self, folder: Path | None) -> None:
        """Without a folder nothing is remembered."""
        self._folder = folder
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def of(self, bandit: int) -> Testimony | None:
        """What is remembered of a bandit."""
        if self._folder is None:
            return None
        try:
            return Testimony(**json.loads((self._folder / f"{bandit}.json").read_bytes()))
        except FileNotFoundError:
            return None

    def remember(self, bandit: int, testimony: Testimony) -> None:
        """Remember it; it is on the disk when this returns."""
        if self._folder is None:
            return
        staged = self._folder / f"{bandit}.{os.getpid()}.new"
        staged.touch(0o600)
        with staged.open("wb") as file:
            file.write(json.dumps(testimony._asdict()).encode())
            file.flush()
            os.fsync(file.fileno())
        staged.replace(self._folder / f"{bandit}.json")
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # not every file system can
                os.fsync(folder)
        finally:
            os.close(folder)
