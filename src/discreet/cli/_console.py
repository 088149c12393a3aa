"""What the command line prints: tables for people, JSON for programs, progress for the patient.

Rich is imported where it is used, so that a command that prints JSON does not wait for it.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


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
    """One JSON object on standard output, and nothing else there."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")


def print_table(title: str, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    """A table for people."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    for column in columns:
        table.add_column(escape(column), overflow="fold")
    for row in rows:
        cells = (f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row)
        table.add_row(*map(escape, cells))
    Console().print(table)


def print_text(text: str) -> None:
    """A paragraph for people."""
    from rich.console import Console

    Console().print(text, highlight=False, markup=False)


def note(message: str) -> None:
    """One line on standard error."""
    print(f"discreet: {message}", file=sys.stderr)
