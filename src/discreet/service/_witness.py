"""What was shown, remembered outside of the data: so that a restored backup is found out.

A backup that is restored brings back an older learner together with its ledger, and nothing in it
knows of what was released since. A witness is a folder that is *not* restored with it. For each
bandit it holds the head of the learner's ledger and how many rows the learner had, from before its
first row on. So where it knows nothing of a learner, the data came from elsewhere, and may be old.
"""

import contextlib
import os
from pathlib import Path

import msgspec

from discreet.errors import ParameterError, RewoundStateError, StoreError


class Testimony(msgspec.Struct, frozen=True):
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
    """A folder with a file for each bandit.

    Args:
        folder: where; without one nothing is remembered.
        new: whether somebody vouches that the data is the newest where the folder knows nothing.
    """

    def __init__(self, folder: Path | None, *, new: bool = False) -> None:
        """Make the folder. `ParameterError` if it cannot be used."""
        self._folder = folder
        self._new = new
        if folder is not None:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ParameterError(
                    "witness", f"{folder} cannot be used: {error.strerror}"
                ) from None

    @property
    def folder(self) -> Path | None:
        """The folder; None if nothing is remembered outside of the data."""
        return self._folder

    def of(self, bandit: int) -> Testimony | None:
        """What is remembered of a bandit.

        Raises:
            RewoundStateError: there is a file and it cannot be read; nobody knows what was shown.
        """
        if self._folder is None:
            return None
        file = self._folder / f"{bandit}.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=Testimony)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            raise RewoundStateError(
                "witness",
                f"{file} cannot be read, so nobody knows what was shown before; bring it back. If "
                "the data is certain to be the newest, remove it and start once with --new-witness",
            ) from None

    def require(self, bandit: int) -> Testimony | None:
        """What is remembered of a bandit that has a learner. None only if that may be.

        It may be if there is no folder, or if somebody vouched for the data.

        Raises:
            RewoundStateError: nothing is remembered, or it cannot be read.
        """
        found = self.of(bandit)
        if found is None and self._folder is not None and not self._new:
            raise RewoundStateError(
                "witness",
                f"{self._folder} knows nothing of this bandit, so nobody knows whether its data is "
                "the newest; bring the witness along from where the data was. If the data is "
                "certain to be the newest, start once with --new-witness",
            )
        return found

    def remember(self, bandit: int, testimony: Testimony) -> None:
        """Remember it; it is on the disk when this returns.

        Raises:
            StoreError: it cannot be written.
        """
        if self._folder is None:
            return
        try:
            self._write(self._folder, bandit, msgspec.json.encode(testimony))
        except OSError as error:
            raise StoreError(
                "witness", f"cannot be written ({error.strerror}); see to its disk"
            ) from None

    @staticmethod
    def _write(folder: Path, bandit: int, content: bytes) -> None:
        staged = folder / f"{bandit}.{os.getpid()}.new"
        staged.touch(0o600)
        with staged.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(folder / f"{bandit}.json")
        opened = os.open(folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # not every file system can
                os.fsync(opened)
        finally:
            os.close(opened)
