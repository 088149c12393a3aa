"""Where the files of a kept learner are, and where they may be. It reads and writes none of them.

Every refusal comes before anything is made.
"""

import os
from pathlib import Path

from discreet.errors import (
    MissingFileError,
    ParameterError,
    ReloadNeededError,
    StateExistsError,
    StateFileError,
)

COMPANIONS = ("journal", "ledger", "lock")

Identity = tuple[int, int]  # device and number of a file


def companion(path: Path, name: str) -> Path:
    """The journal, ledger or lock beside a snapshot."""
    return path.with_name(f"{path.name}.{name}")


def fresh(path: Path, learner: str) -> Path:
    """Where the next version of a file is written before it takes the file's place.

    The learner's id is in the name: nobody else has such a file, and what a crash leaves is known
    again by the learner that left it.
    """
    return path.with_name(f".{path.name}.{learner}.new")


def new(path: str | os.PathLike[str]) -> Path:
    """A place for a new learner, in a folder that is there."""
    target = _plain(path)
    if not target.parent.is_dir():
        raise ParameterError(
            "path", f"{target.parent} is not a folder; make it first, or give another path"
        )
    return target


def old(path: str | os.PathLike[str]) -> Path:
    """A place where a learner may be kept: there is a file."""
    target = _plain(path)
    if not target.exists():
        raise MissingFileError(
            "path", f"{target} does not exist; give the path that the learner was kept at"
        )
    return target


def _plain(path: str | os.PathLike[str]) -> Path:
    try:
        target = Path(path).resolve()
    except (TypeError, ValueError):
        raise ParameterError("path", "is not a path; give the name of a file") from None
    for name in COMPANIONS:
        if target.name.lower().endswith(f".{name}"):
            raise ParameterError(
                "path",
                f"ends in .{name}, which is the name of a file beside a learner; give the "
                "learner's own path, without such an ending",
            )
    if target.is_dir():
        raise ParameterError("path", f"{target} is a folder; give the name of a file in it")
    return target


def require_nothing(target: Path) -> None:
    """Refuse to overwrite anything."""
    for place in (target, companion(target, "journal"), companion(target, "ledger")):
        if place.exists() or place.is_symlink():
            raise StateExistsError(
                "path",
                f"{place} exists already; open the learner that is kept there, give another path, "
                f"or, if a start failed, remove that file and those named .{target.name}.*.new",
            )


def missing(place: Path) -> MissingFileError:
    """A journal or a ledger is not there."""
    return MissingFileError(
        "path",
        f"{place} is missing, and without it nobody can tell whether the state is the "
        "newest; restore that file, or start a new learner",
    )


def tighten(target: Path) -> None:
    """Make files that others could open private again, or refuse those of another owner."""
    for place in (target, *(companion(target, name) for name in COMPANIONS)):
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


def identity(place: str | Path | int) -> Identity:
    """Which file is at a place, or open."""
    found = os.stat(place)  # noqa: PTH116  # a descriptor has no path, and this is called often
    return found.st_dev, found.st_ino


def require_unmoved(known: dict[str, Identity]) -> None:
    """Refuse if other files, or none, are where a learner has its own open."""
    for place, before in known.items():
        try:
            same = identity(place) == before
        except (FileNotFoundError, NotADirectoryError):
            same = False
        if not same:
            raise ReloadNeededError(
                "path",
                f"{place} was moved, deleted or replaced under the open learner, which changes "
                "nothing more; close it and load it from where its files are now, or start a new "
                "one if they are gone",
            )
