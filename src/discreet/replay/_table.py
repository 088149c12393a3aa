"""Files of rows and columns, read a chunk at a time: CSV, and Parquet if pyarrow is there.

What a cell says depends on that cell alone, never on others in its column: a column is not text
because one person's cell is. Messages say where something is wrong, never what stands there.
"""

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import chain, islice
from operator import itemgetter
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

    @abstractmethod
    def at(self, rows: NDArray[np.int64]) -> "Column":
        """The column of the cells at ``rows``."""

    def texts(self) -> list[str | None]:
        """The cells as text; None for what is missing."""
        return [read.text(value) for value in self.values()]

    def factored(self) -> Factored:
        """The column by its different values."""
        distinct, codes = read.factor(self.values())
        return Factored([read.text(value) for value in distinct], codes)


Chunk = tuple[int, Mapping[str, Column]]
"""How many rows, and their columns by name."""


class Table(ABC):
    """A file with named columns.

    Attributes:
        path: where it is.
        names: of its columns.
    """

    path: Path
    names: tuple[str, ...]

    @abstractmethod
    def chunks(self, wanted: Sequence[str], rows: int) -> Iterator[Chunk]:
        """The wanted columns, no more than so many rows at a time."""

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

    Empty cells are missing, and lines with nothing in them are passed over.
    """

    def __init__(self, path: Path) -> None:
        """Read the names."""
        self.path = path
        self.names = tuple(next((row for _, row in self._records()), ()))
        if not self.names:
            raise ParameterError("log", "is empty; its first line must name the columns")

    def chunks(self, wanted: Sequence[str], rows: int) -> Iterator[Chunk]:
        """See `Table`. Lines without quotation marks are split here, which is far quicker."""
        places = {name: self.names.index(name) for name in wanted}
        start, commas = 0, len(self.names) - 1
        with _watched(), self.path.open(encoding="utf-8-sig", newline="") as file:
            head = csv.reader(file, strict=True)
            while not next(head):
                pass
            while lines := list(islice(file, rows)):
                if {line.count(",") for line in lines} == {commas}:
                    text = "".join(lines)
                    if commas and '"' not in text:
                        yield len(lines), _Split(text, len(self.names), places)
                        start += len(lines)
                        continue
                # From here on it takes a parser.
                parser = csv.reader(chain(lines, file), strict=True)
                yield from self._parsed(parser, places, rows, start)
                return

    def _parsed(
        self, parser: Iterator[list[str]], places: dict[str, int], rows: int, start: int
    ) -> Iterator[Chunk]:
        width = len(self.names)
        while found := list(islice(parser, rows)):
            found = [row for row in found if row]
            wrong = next((at for at, row in enumerate(found) if len(row) != width), None)
            if wrong is not None:
                raise ParameterError(
                    "log",
                    f"has more or fewer cells than columns in {self.place(start + wrong)}; correct "
                    "it, or leave that row out",
                )
            cells = list(zip(*found, strict=True)) or [()] * width
            yield len(found), {name: _Texts(cells[place]) for name, place in places.items()}
            start += len(found)

    def place(self, row: int) -> str:
        """See `Table`. The file is read again to tell: a row may have several lines."""
        return f"line {next(islice(self._records(), row + 1, None))[0]:,}"

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The first line and the cells of each row, that of the names first."""
        with _watched(), self.path.open(encoding="utf-8-sig", newline="") as file:
            parser, line = csv.reader(file, strict=True), 1
            for row in parser:
                if row:
                    yield line, row
                line = parser.line_num + 1


@contextmanager
def _watched() -> Iterator[None]:
    """Say what is wrong with a CSV file, without a word of what it holds."""
    try:
        yield
    except UnicodeDecodeError:
        raise ParameterError("log", "is not text in UTF-8; save it as that") from None
    except csv.Error:
        raise ParameterError(
            "log",
            "cannot be read as CSV: a quotation mark is not closed or has something after it, or a "
            "cell has more than 131,072 characters",
        ) from None


class _Split(Mapping[str, Column]):
    """Columns of lines that have no quotation marks; split when the first one is asked for."""

    def __init__(self, text: str, width: int, places: dict[str, int]) -> None:
        self._text, self._width, self._places = text, width, places
        self._cells: list[str] | None = None

    def __getitem__(self, name: str) -> Column:
        if self._cells is None:
            lines = self._text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
            self._cells = lines.replace("\n", ",").split(",")
        return _Texts(tuple(self._cells[self._places[name] :: self._width]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _Texts(Column):
    """Cells of a CSV file; an empty one is missing."""

    def __init__(self, cells: tuple[str, ...]) -> None:
        self._cells = cells

    def numbers(self) -> Cells:
        return numbers_of(self._cells)

    def values(self) -> Cells:
        return self.texts()

    def texts(self) -> list[str | None]:
        return [cell or None for cell in self._cells]

    def at(self, rows: NDArray[np.int64]) -> Column:
        cells = self._cells
        if rows.size < 2:  # `itemgetter` makes no tuple of one
            return _Texts(tuple(cells[row] for row in rows))
        return self if rows.size == len(cells) else _Texts(itemgetter(*rows.tolist())(cells))

    def factored(self) -> Factored:
        place = {name: number for number, name in enumerate(dict.fromkeys(self._cells))}
        codes = np.fromiter(map(place.__getitem__, self._cells), np.int64, len(self._cells))
        return Factored([name or None for name in place], codes)


def numbers_of(cells: Sequence[str | None]) -> Cells:
    """Texts as numbers, each by itself; those that are none stay what they are."""
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))  # type: ignore[arg-type]  # what is no number is an error that is caught
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
        """Read the names."""
        try:
            self._parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise BackendError("log", _EXTRA) from None
        self.path = path
        self._troubles = (import_module("pyarrow").ArrowException, OSError)
        self.names = tuple(self._file().schema_arrow.names)

    def chunks(self, wanted: Sequence[str], rows: int) -> Iterator[Chunk]:
        """See `Table`."""
        try:
            file = self._file()
            batches = file.iter_batches(
                batch_size=min(rows, _ROWS_AT_ONCE), columns=list(wanted), use_threads=False
            )
            for batch in batches:
                yield batch.num_rows, {name: _Arrow(batch.column(name)) for name in wanted}
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

    def at(self, rows: NDArray[np.int64]) -> Column:
        return _Arrow(self._array.take(import_module("pyarrow").array(rows)))

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
