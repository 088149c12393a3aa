"""The files of a learner in SQLite: their names, who may open them, and errors about them."""

import contextlib
import os
from pathlib import Path

from discreet.curator.store import Place
from discreet.errors import (
    MissingFileError,
    ParameterError,
    StateExistsError,
    StateFileError,
    StoreError,
)

SUFFIX = ".ledger"
LOG = "-wal"  # SQLite's write-ahead log
EXTRAS = (LOG, "-shm", "-journal")
_OWN_SUFFIXES = (SUFFIX, *EXTRAS)


def ledger_beside(path: Path) -> Path:
    """The ledger's path, of that of its database."""
    return path.with_name(f"{path.name}{SUFFIX}")


def resolved(place: Place) -> Path:
    """The absolute path that a caller's place means."""
    try:
        path = Path(place).resolve() if os.fspath(place) else None
    except (TypeError, ValueError, RuntimeError):
        path = None
    if path is None:
        raise ParameterError("path", "is not a path; give the name of a file")
    return path


def _path_for_database(place: Place) -> Path:
    """A path that a database may have, whether it is there or not."""
    target = resolved(place)
    try:
        folder = target.is_dir()
        ledger_beside(target).exists()  # its name may be too long when the other is not
    except OSError as error:
        raise trouble(target, error) from None
    for suffix in _OWN_SUFFIXES:
        if target.name.lower().endswith(suffix):
            raise ParameterError(
                "path",
                f"ends in {suffix}, which is the name of a file beside a learner; give the "
                "learner's own path, without such an ending",
            )
    if folder:
        raise ParameterError("path", f"{target} is a folder; give the name of a file in it")
    return target


def path_for_new_store(place: Place) -> Path:
    """Where a new database goes; its folder is there."""
    target = _path_for_database(place)
    if not target.parent.is_dir():
        raise ParameterError(
            "path", f"{target.parent} is not a folder; make it first, or give another path"
        )
    return target


def path_of_stored(place: Place) -> Path:
    """Where a database is; it is a file."""
    target = _path_for_database(place)
    if not target.exists():
        raise MissingFileError(
            "path", f"{target} does not exist; give the path that the learner is stored at"
        )
    if not target.is_file():
        raise ParameterError("path", f"{target} is not a file; give the path of a learner")
    return target


def make_private(*places: Path) -> None:
    """Make files that others could open private again, or refuse those of another owner."""
    for place in places:
        found = place.stat()
        if not found.st_mode & 0o077:
            continue
        try:
            place.chmod(0o600)
        except OSError:
            if found.st_uid == os.geteuid():
                continue  # not every file system has modes
            raise StateFileError(
                "path",
                f"{place} can be opened by others and belongs to another user; make it yours and "
                "private first (chown, chmod 600)",
            ) from None


def remove_extras(target: Path) -> None:
    """Remove what SQLite leaves beside a database that is gone."""
    for suffix in EXTRAS:
        with contextlib.suppress(OSError):
            Path(f"{target}{suffix}").unlink(missing_ok=True)


def exists_already(place: Path) -> StateExistsError:
    return StateExistsError(
        "path",
        f"{place} exists already; open the learner that is stored there, give another path, or "
        "remove both files, the learner's and its .ledger",
    )


def ledger_missing(place: Path) -> MissingFileError:
    return MissingFileError(
        "path",
        f"{place} is missing, and without it nobody can tell whether the state is the newest; "
        "restore that file, or start a new learner",
    )


def trouble(place: Path, error: Exception) -> StoreError:
    what = error.strerror if isinstance(error, OSError) else str(error)
    return StoreError("path", f"{place} could not be used ({what}); try again")
