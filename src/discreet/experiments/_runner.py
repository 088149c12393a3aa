"""Run what is missing, keep what is finished, and run again what a lost worker took with it.

It knows tasks, workers and a store, and nothing of what is measured.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import joblib

from discreet.errors import CellError
from discreet.experiments._backends import Workers
from discreet.experiments._cell import Finished, Task
from discreet.experiments._store import Store

LOSSES_ALLOWED = 3  # how often a cell may have been under way when a worker was lost


def run(
    tasks: Sequence[Task],
    store: Store,
    workers: Workers,
    *,
    on_cell: Callable[[int], None] | None = None,
) -> None:
    """Run every task that the store does not have yet.

    Args:
        tasks: all of them, the ones that take longest best first.
        store: where finished ones are kept, at once.
        workers: where they run.
        on_cell: called with the number of finished tasks whenever there is another.
    """
    losses: Counter[str] = Counter()
    missing = _missing(tasks, store)
    _prepare(missing)
    while missing:
        try:
            with closing(_run_once(missing, workers, losses)) as stream:
                for finished in stream:
                    store.add(finished)
                    losses.pop(finished.key, None)
                    if on_cell is not None:
                        on_cell(len(store.finished))
        except workers.lost as error:
            _judge(losses, error)
        missing = _missing(tasks, store)


def _missing(tasks: Sequence[Task], store: Store) -> list[Task]:
    finished = store.finished
    return [task for task in tasks if task.key not in finished]


def _prepare(missing: Sequence[Task]) -> None:
    """Compile here, once, rather than in every worker at the same time."""
    for task in {task.experiment: task for task in missing}.values():
        task.cell.prepare()


def _run_once(
    missing: Sequence[Task], workers: Workers, losses: Counter[str]
) -> Generator[Finished]:
    """Until all are done or a worker is lost; ``losses`` then counts what was under way."""

    def handed_out() -> Iterator[object]:
        for task in missing:
            losses[task.key] += 1
            yield joblib.delayed(_attempt)(task)

    with _quietly_closing(workers.parallel()(handed_out())) as outcomes:
        for finished, trouble in outcomes:
            if trouble is not None:
                raise CellError("cell", f"{finished}: {trouble}")
            yield finished


@contextmanager
def _quietly_closing(outcomes: Any) -> Iterator[Any]:  # noqa: ANN401  # joblib ships no types
    """Whoever leaves early knows it; joblib need not warn."""
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            outcomes.close()


def _attempt(task: Task) -> tuple[Finished | str, str | None]:
    """In a worker. Errors travel as text: not all of them survive being pickled."""
    try:
        return task.run(), None
    except Exception as error:  # noqa: BLE001  # all of them are reported
        return task.key, f"{type(error).__name__}: {error}"


def _judge(losses: Counter[str], error: BaseException) -> None:
    """Go on, unless some cell was under way too often when a worker was lost."""
    worst = [key for key, count in losses.items() if count > LOSSES_ALLOWED]
    if worst:
        reason = type(error).__name__
        raise CellError(
            "cell",
            f"{worst[0]} lost its worker {LOSSES_ALLOWED + 1} times ({reason}); is there enough "
            "memory? Finished cells are kept: run the same command again to go on",
        ) from error
