"""Files of rows and columns, read a chunk at a time: CSV, and Parquet if pyarrow is there.

What a cell says depends on that cell alone, never on others in its column: a column is not text
because one person's cell is. Messages say where something is wrong, never what stands there.
"""

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BackendError, ParameterError
from discreet.features import _values as read

Cells = NDArray[Any] | list[Any]

_ROWS_AT_ONCE = 65_536  # of a Parquet file
_EXTRA = "is a Parquet file, which needs pyarrow; install it with pip install 'discreet[parquet]'"


class Factored(NamedTuple):
    """A column by its different values, as text, and which of them each row has.

    Attributes:
        names: the different values; None for what is missing.
        codes: a place in ``names`` for each row, shape (n,).
    """

    names: list[str | None]
    codes: NDArray[np.int64]


class Column(ABC):
    """A column of a chunk."""

    @abstractmethod
    def numbers(self) -> Cells:
        """Numbers, with NaN for what is missing; a list with texts in it if there are any."""

    @abstractmethod
    def values(self) -> Cells:
        """The cells as they are; None for what is missing."""

    def factored(self) -> Factored:
        """The column by its different values."""
        distinct, codes = read.factor(self.values())
        return Factored([read.text(value) for value in distinct], codes)


class Table(ABC):
    """A file with named columns.

    Attributes:
        path: where it is.
        names: of its columns.
    """

    path: Path
    names: tuple[str, ...]

    @abstractmethod
    def chunks(self, wanted: Sequence[str], rows: int) -> Iterator[tuple[int, dict[str, Column]]]:
        """The wanted columns, so many rows at a time, and how many rows each chunk has."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Where a row is, counted from 0, in words."""


def opened(path: Path) -> Table:
    """The table in a file.

    Args:
        path: a file whose name ends in .csv, .parquet or .pq.

    Returns:
        The table; only its head has been read.

    Raises:
        ParameterError: It is no such file.
        BackendError: It is a Parquet file, and pyarrow is not installed.
    """
    kinds: dict[str, type[CsvTable | ParquetTable]] = {
        ".csv": CsvTable,
        ".parquet": ParquetTable,
        ".pq": ParquetTable,
    }
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise ParameterError("log", f"must be one of {', '.join(kinds)} by the end of its name")
    if not path.is_file():
        raise ParameterError("log", "is no file that can be read; give the path of one")
    found = kind(path)
    if len(set(found.names)) < len(found.names):
        raise ParameterError("log", "has two columns of the same name; give each its own")
    return found


class CsvTable(Table):
    """Comma-separated text in UTF-8, with the columns' names in the first line.

    Empty cells are missing, lines with nothing in them are passed over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = ()
        for _, row in self._rows():
            self.names = tuple(row)
            break
        if not self.names:
            raise ParameterError("log", "is empty; its first line must name the columns")

    def chunks(self, wanted: Sequence[str], rows: int) -> Iterator[tuple[int, dict[str, Column]]]:
        """See `Table`."""
        width, places = len(self.names), [self.names.index(name) for name in wanted]
        start = 0
        with self._reader() as reader:
            next(reader)
            while True:
                found = self._taken(reader, rows)
                if not found:
                    return
                if set(map(len, found)) != {width}:
                    found = [row for row in found if row]
                    wrong = next((at for at, row in enumerate(found) if len(row) != width), None)
                    if wrong is not None:
                        raise ParameterError(
                            "log",
                            f"has more or fewer cells than columns in {self.place(start + wrong)}",
                        )
                columns = list(zip(*found, strict=True)) or [()] * width
                yield len(found), {
                    name: _Texts(columns[place])
                    for name, place in zip(wanted, places, strict=True)
                }
                start += len(found)

    def place(self, row: int) -> str:
        """See `Table`; the file is read again to tell, as a row may have several lines."""
        for number, (line, _) in enumerate(self._rows()):
            if number == row + 1:
                return f"line {line:,}"
        return f"row {row + 1:,}"

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Each row with the number of its first line, the columns' names first."""
        with self._reader() as reader:
            line = 1
            while found := self._taken(reader, 1):
                if found[0]:
                    yield line, found[0]
                line = reader.line_num + 1

    def _reader(self) -> "_Reader":
        return _Reader(self.path)

    def _taken(self, reader: "_Reader", count: int) -> list[list[str]]:
        try:
            return list(islice(reader, count))
        except UnicodeDecodeError:
            trouble = "is not text in UTF-8; save it as that"
        except csv.Error:
            trouble = (
                f"cannot be read as CSV in line {reader.line_num:,}: a quotation mark that is not "
                "closed, or a cell of more than 131,072 characters"
            )
        raise ParameterError("log", trouble)


class _Reader:
    """Rows of a CSV file, which is closed in the end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open(encoding="utf-8-sig", newline="")
        self._reader = csv.reader(self._file, strict=True)

    @property
    def line_num(self) -> int:
        return self._reader.line_num

    def __iter__(self) -> "_Reader":
        return self

    def __next__(self) -> list[str]:
        return next(self._reader)

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _Texts(Column):
    """Cells of a CSV file; an empty one is missing."""

    def __init__(self, cells: tuple[str, ...]) -> None:
        self._cells = cells

    def numbers(self) -> Cells:
        return numbers_of(self._cells)

    def values(self) -> Cells:
        return [cell or None for cell in self._cells]

    def factored(self) -> Factored:
        place = {name: number for number, name in enumerate(dict.fromkeys(self._cells))}
        codes = np.fromiter(map(place.__getitem__, self._cells), np.int64, len(self._cells))
        return Factored([name or None for name in place], codes)


def numbers_of(cells: Sequence[str | None]) -> Cells:
    """Texts as numbers, each by itself; those that are none stay what they are."""
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # something is missing, or no number
        found = [_number(cell) for cell in cells]
    if any(isinstance(one, str) for one in found):
        return found
    return np.array(found, dtype=np.float64)


def _number(cell: str | None) -> float | str | None:
    if not cell:
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


class ParquetTable(Table):
    """A Parquet file. Text in it is read as in a CSV file, so that both say the same."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            raise BackendError("log", _EXTRA) from None
        self.path = path
        self._parquet, self._troubles = parquet, (pa.ArrowException, OSError)
        self.names = tuple(self._file().schema_arrow.names)

    def chunks(self, wanted: Sequence[str], rows: int) -> Iterator[tuple[int, dict[str, Column]]]:
        """See `Table`."""
        try:
            file = self._file()
            batches = file.iter_batches(
                batch_size=min(rows, _ROWS_AT_ONCE), columns=list(wanted), use_threads=False
            )
            for batch in batches:
                columns = {name: _Arrow(batch.column(name)) for name in wanted}
                yield batch.num_rows, dict(columns)
        except self._troubles:
            self._refuse()

    def place(self, row: int) -> str:
        """See `Table`."""
        return f"row {row + 1:,}"

    def _file(self) -> Any:  # noqa: ANN401  # pyarrow's own
        try:
            return self._parquet.ParquetFile(self.path)
        except self._troubles:
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise ParameterError("log", "cannot be read as a Parquet file; write it again") from None


class _Arrow(Column):
    """An Arrow array."""

    def __init__(self, array: Any) -> None:  # noqa: ANN401  # pyarrow's own
        self._array = array

    def numbers(self) -> Cells:
        found = self.values()
        if isinstance(found, np.ndarray):
            return found
        if all(one is None or isinstance(one, str) for one in found):
            return numbers_of(found)
        return found

    def values(self) -> Cells:
        kind = str(self._array.type)
        plain = kind.startswith(("int", "uint", "float", "double", "half"))
        if plain and not self._array.null_count:
            found: NDArray[Any] = self._array.to_numpy(zero_copy_only=False)
            return found
        cells: list[Any] = self._array.to_pylist()
        if plain:
            return cells
        return [None if cell == "" else cell for cell in cells]
