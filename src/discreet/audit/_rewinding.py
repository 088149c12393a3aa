"""Putting an old state back, as a backup or a snapshot would, and continuing it once more.

What a learner writes is put back as it was, all but its ledger: that is kept where no backup
reaches. A learner that looks into its ledger refuses to go on. One that does not shows the same row
under other noise each time, or other rows under the same noise.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.audit import _streams as streams
from discreet.audit._trials import Evidence, Learner, Make, require_a_release, split
from discreet.errors import ForkedStateError, RewoundStateError

F64 = NDArray[np.float64]

TURNS = 320  # continuations of one state; one in eight is without the row
_FEWEST, _MOST = 40, 100  # trials of each world
_LEDGER = ".ledger"


@runtime_checkable
class Kept(Learner, Protocol):
    """A learner that can be kept in files."""

    def save(self, path: Path) -> None:
        """Keep it there from now on."""

    def close(self) -> None:
        """Give the files up."""


Load = Callable[[Path], Learner]


def gather(make: Make, load: Load, pair: streams.Pair, *, trials: int) -> Evidence | None:
    """Trials of both worlds, shape (trials, 2, p): the mean release with the row, and without it.

    None if a state that was put back is refused. A trial takes many files, so there are few.
    """
    count = min(_MOST, max(_FEWEST, trials // 1000))
    shown: list[list[F64]] = [[], []]
    with tempfile.TemporaryDirectory() as folder:
        for trial in range(count):
            for world, row in enumerate(pair):
                place = Path(folder) / f"{trial}-{world}"
                place.mkdir()
                found = _continued(make, load, row, place)
                if found is None:
                    return None
                shown[world].append(found)
    shift = np.array([pair.difference, 0 * pair.difference])
    return split(np.array(shown[0]), np.array(shown[1]), shift)


def _continued(make: Make, load: Load, row: streams.Row, folder: Path) -> F64 | None:
    learner = cast("Kept", make())
    mechanism = learner.mechanism
    last = require_a_release(streams.release_times(mechanism, 1))[0] - 1
    plain = streams.zeros(mechanism.setting.problem.dim)
    for _ in range(last):
        _add(learner, plain)
    path = folder / "learner"
    learner.save(path)
    backup = {file.name: file.read_bytes() for file in folder.iterdir() if not _kept(file)}
    seen: tuple[list[F64], list[F64]] = ([], [])
    for turn in range(TURNS):
        if turn:
            learner.close()
            _put_back(folder, backup)
            try:
                learner = cast("Kept", load(path))
            except (RewoundStateError, ForkedStateError):
                return None
        without = turn % 8 == 0
        _add(learner, plain if without else row)
        release = learner.release
        seen[without].append(streams.view(release.gram, release.moment))
    learner.close()
    return np.array([np.mean(group, axis=0) for group in seen])


def _add(learner: Learner, row: streams.Row) -> None:
    learner.learn(learner.choose(row.action[np.newaxis]), row.reward)


def _kept(file: Path) -> bool:
    return file.name.endswith(_LEDGER)


def _put_back(folder: Path, backup: dict[str, bytes]) -> None:
    for file in folder.iterdir():
        if not _kept(file):
            file.unlink()
    for name, content in backup.items():
        (folder / name).write_bytes(content)
