"""What the command line prints: tables for people, JSON for programs, progress on standard error.

Rich is imported where it is used, so that a command that prints JSON does not wait for it.
"""

import codecs
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

from discreet.errors import DiscreetError

_PLAIN = "discreet-plain"  # how characters are written that an encoding does not have
_SPELLINGS = str.maketrans({"…": "...", "²": "^2", "±": "+-", "ε": "epsilon", "δ": "delta"})


class _Output:
    """Standard output; what goes wrong there is a `DiscreetError`, whoever writes.

    Left to themselves, some of the libraries that write there would end the program in silence.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # all else is the stream's own
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._watched():
            return self._stream.write(text)

    def flush(self) -> None:
        with self._watched():
            self._stream.flush()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # The interpreter writes what is left when it ends: let that go nowhere.
            with suppress(OSError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123  # no Path
                os.dup2(nowhere.fileno(), self._stream.fileno())
            raise DiscreetError(
                "standard output", f"{error.strerror or error}; not everything was printed"
            ) from None


@contextmanager
def output() -> Iterator[None]:
    """Print to a standard output that may be closed, full, or unable to write every character.

    Raises:
        DiscreetError: Not everything could be printed.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN)
    if sys.stdout is None:
        raise DiscreetError("standard output", "is closed; there is nowhere to print to")
    guarded = _Output(sys.stdout)
    with redirect_stdout(guarded):
        try:
            yield
        finally:
            guarded.flush()


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that an encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end].translate(_SPELLINGS)
    return "".join(letter if letter.isascii() else "?" for letter in missing), error.end


codecs.register_error(_PLAIN, _spelled)


@contextmanager
def progress(total: int, rounds: int = 0) -> Iterator[Callable[[int], None] | None]:
    """A callback that moves a bar on standard error, or None if nobody is watching.

    With ``rounds`` for each step, the bar also shows the rate.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeftColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.completed} of {task.total}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TimeLeftColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def update(done: int) -> None:
            rate = done * rounds / (bar.tasks[task].elapsed or 1.0)
            bar.update(task, completed=done, description=f"{rate:,.0f} rounds/s" if rounds else "")

        yield update


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output, in ASCII, and nothing else there."""
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:  # JSON has no infinity
        raise DiscreetError(
            "settings", "lead to numbers beyond floating point; give less extreme ones"
        ) from None
    sys.stdout.write(text + "\n")


def print_table(title: str, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    """A table for people, in characters that standard output can write."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()

    def shown(cell: object) -> str:
        text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
        # Widths are of what is printed in the end.
        return escape(text.encode(console.encoding, _PLAIN).decode(console.encoding))

    table = Table(title=shown(title), title_justify="left")
    for column in columns:
        table.add_column(shown(column), overflow="fold")
    for row in rows:
        table.add_row(*map(shown, row))
    console.print(table)


def print_text(text: str) -> None:
    """A paragraph for people."""
    from rich.console import Console

    Console().print(text, highlight=False, markup=False)


def note(message: str) -> None:
    """One line on standard error, if there is one."""
    with suppress(OSError):
        if sys.stderr is not None:
            print(f"discreet: {message}", file=sys.stderr)
