"""SQLite's log is read as SQLite reads it, also after a crash in the middle of a write."""

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from discreet.curator.store import _wal
from discreet.errors import CorruptFileError


def written(folder: Path, *, page: int = 4096, commits: int = 6) -> tuple[bytes, bytes]:
    """A database and its log after commits that change, add and remove rows."""
    path = folder / "database"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"PRAGMA page_size={page}")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE item (number INTEGER PRIMARY KEY, value BLOB)")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    rng = np.random.default_rng(page)
    for number in range(commits):
        database.execute("BEGIN")
        for _ in range(3):
            value = rng.bytes(int(rng.integers(1, 2 * page)))
            row = (int(rng.integers(0, 8)), value)
            database.execute("INSERT OR REPLACE INTO item VALUES (?, ?)", row)
        if number % 3 == 2:
            database.execute("DELETE FROM item WHERE number < 2")
        database.execute("COMMIT")
    found = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    database.close()
    return found


def by_sqlite(folder: Path, database: bytes, log: bytes | None) -> list[tuple[int, bytes]]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "copy").write_bytes(database)
    if log is not None:
        (folder / "copy-wal").write_bytes(log)
    return rows(sqlite3.connect(folder / "copy"))


def rows(database: sqlite3.Connection) -> list[tuple[int, bytes]]:
    try:
        assert database.execute("PRAGMA quick_check").fetchone() == ("ok",)
        return database.execute("SELECT * FROM item ORDER BY number").fetchall()
    finally:
        database.close()


def here(database: bytes, log: bytes | None) -> list[tuple[int, bytes]]:
    copy = sqlite3.connect(":memory:")
    copy.deserialize(_wal.image(database, log))
    return rows(copy)


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_what_is_committed_is_read_whatever_the_size_of_a_page(tmp_path: Path, page: int) -> None:
    database, log = written(tmp_path, page=page)
    found = here(database, log)
    assert len(found) > 2
    assert found == by_sqlite(tmp_path / "copy", database, log)
    assert here(database, None) == here(database, b"") == []


def test_a_log_that_was_cut_off_anywhere_counts_up_to_its_last_whole_commit(tmp_path: Path) -> None:
    database, log = written(tmp_path, page=512)
    rng = np.random.default_rng(1)
    states = set()
    edges = [0, 1, 31, 32, 33, 55, 56, 57, len(log), *rng.integers(0, len(log), 80).tolist()]
    for cut in edges:
        found = here(database, log[:cut])
        assert found == by_sqlite(tmp_path / "copy", database, log[:cut])
        states.add(repr(found))
    assert len(states) == 7  # none and each of the six commits


def test_a_flipped_bit_ends_the_log_where_it_is(tmp_path: Path) -> None:
    database, log = written(tmp_path, page=512)
    rng = np.random.default_rng(2)
    for place in [*range(32), *rng.integers(32, len(log), 80).tolist()]:
        broken = bytearray(log)
        broken[place] ^= 1 << int(rng.integers(8))
        assert here(database, bytes(broken)) == by_sqlite(
            tmp_path / "copy", database, bytes(broken)
        ), place


def test_a_log_that_was_begun_anew_keeps_no_old_frames(tmp_path: Path) -> None:
    path = tmp_path / "database"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE item (number INTEGER PRIMARY KEY, value BLOB)")
    for number in range(20):
        database.execute("INSERT INTO item VALUES (?, ?)", (number, bytes(3_000)))
    database.execute("PRAGMA wal_checkpoint(RESTART)")
    database.execute("INSERT INTO item VALUES (99, x'00')")  # over the first of the old frames
    log = Path(f"{path}-wal").read_bytes()
    assert len(log) > 40 * 4096
    wanted = database.execute("SELECT * FROM item ORDER BY number").fetchall()
    assert here(path.read_bytes(), log) == wanted
    database.close()


def test_a_log_may_be_all_there_is(tmp_path: Path) -> None:
    database, log = written(tmp_path)
    header = database[:100]
    assert header[:16] == b"SQLite format 3\0"
    grown = _wal.image(b"", log)
    assert len(grown) % 4096 == 0


def test_checksums_in_the_other_byte_order_are_read(tmp_path: Path) -> None:
    """As a machine with the other byte order writes them."""
    database, log = written(tmp_path, page=512)
    swapped = bytearray(log)
    big = log[3] & 1
    swapped[3] ^= 1
    words = "<u4" if big else ">u4"

    def checksum(part: bytes, s: int, t: int) -> tuple[int, int]:
        for x, y in np.frombuffer(part, words).reshape(-1, 2).tolist():
            s = (s + x + t) % 2**32
            t = (t + y + s) % 2**32
        return s, t

    s, t = checksum(bytes(swapped[:24]), 0, 0)
    swapped[24:32] = s.to_bytes(4, "big") + t.to_bytes(4, "big")
    for start in range(32, len(log), 24 + 512):
        s, t = checksum(bytes(swapped[start : start + 8]), s, t)
        s, t = checksum(bytes(swapped[start + 24 : start + 24 + 512]), s, t)
        swapped[start + 16 : start + 24] = s.to_bytes(4, "big") + t.to_bytes(4, "big")
    assert here(database, bytes(swapped)) == here(database, log) != []


def test_a_frame_of_no_page_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, log = written(tmp_path, page=512)
    broken = bytearray(log)
    broken[32:36] = bytes(4)
    monkeypatch.setattr(
        _wal,
        "_carried",
        lambda _, before, pairs: _told(broken, before, pairs),
    )
    with pytest.raises(CorruptFileError, match="truncated or altered"):
        _wal.image(database, bytes(broken))


_PLACES: list[int] = []


def _told(log: bytearray, before: tuple[int, int], pairs: int) -> tuple[int, int]:
    """The checksum that the log says, so that none is wrong."""
    if before == (0, 0):
        _PLACES[:] = [32]
        at = 24
    else:
        at = _PLACES[0] + 16
        _PLACES[0] += 24 + 8 * (pairs - 1)
    return int.from_bytes(log[at : at + 4], "big"), int.from_bytes(log[at + 4 : at + 8], "big")
