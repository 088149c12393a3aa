"""Learners that are stored: calls a second beside memory and the disk's own speed.

Everything is on the disk of this checkout, and takes turns, so that a slow minute is slow for all.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.speed import pairs, workload
from benchmarks.speed.results import BenchSection, Cell
from benchmarks.speed.workload import ROOT, BenchSizes, Run, interleaved, seconds_of
from discreet.errors import ParameterError
from discreet.learner import LinUCB, load

THREADS = (2, 4, 8)
BATCH = 64
LINE = b"x" * 255 + b"\n"  # what the yardstick appends
WAITING_BATCH = 1_000
ROOM = 4 / 3  # of `max_pending`, over the decisions that wait

FSYNC, MEMORY, STORED, BATCHED, BASELINE = (
    "append and fsync",
    "in memory",
    "stored, 1 thread",
    f"stored, batches of {BATCH}",
    "stored, 1 thread, baseline",
)


def store(sizes: BenchSizes) -> BenchSection:
    """Pairs of `choose` and `learn` a second, and what many waiting decisions cost."""
    with tempfile.TemporaryDirectory(prefix=".bench-store-", dir=ROOT) as name:
        folder = Path(name)
        with ExitStack() as stack:
            tasks = _tasks(folder, sizes, stack)
            runs = interleaved(tasks, repeats=sizes.repeats)
        crowded = _crowded(folder / "crowded", sizes)
    rates = {name: median(run.rate for run in found) for name, found in runs.items()}
    rows = [
        {
            "what": name,
            "median": rates[name],
            "best": max(run.rate for run in found),
            "unit": "1/s" if name == FSYNC else "pairs/s",
            "fsyncs_per_pair": None if name == FSYNC else rates[FSYNC] / rates[name],
        }
        for name, found in runs.items()
    ]
    ratio = _over_baseline(runs)
    rows += [_once(what, value, unit) for what, (value, unit) in crowded.items()]
    return BenchSection(
        name="store",
        title=(
            f"a learner in memory and on disk: {pairs.DIM} features, {pairs.N_ACTIONS} actions, "
            "choose and learn"
        ),
        rows=tuple(rows),
        notes=_notes(sizes, ratio),
        figures=_figures(rates, crowded) | ratio,
    )


def _over_baseline(runs: dict[str, tuple[Run, ...]]) -> dict[str, float]:
    """Pairs a second beside those of the baseline, turn by turn; nothing if there is none."""
    turns = zip(runs[STORED], runs.get(BASELINE, ()), strict=False)
    ratios = [ours.rate / theirs.rate for ours, theirs in turns]
    return {"stored_over_baseline": median(ratios)} if ratios else {}


def _notes(sizes: BenchSizes, ratio: dict[str, float]) -> tuple[str, ...]:
    notes = [
        (
            "The yardstick appends a line of 256 bytes to a file and waits for the disk. Each call "
            "of a stored learner is on the disk before it returns: a pair cannot take less than "
            "two such waits, unless threads or a batch share one. `fsyncs per pair` is the time of "
            "a pair over that of the yardstick. All are medians over turns."
        ),
        (
            f"The last lines are of one learner with {sizes.waiting:,} decisions that wait for "
            f"their reward, measured once: the longest of {sizes.waiting_calls:,} single calls, "
            "and how long it takes to make those decisions, to close and to load."
        ),
    ]
    notes += [
        (
            f"The baseline is {sizes.baseline}, each time in a process of its own. This checkout "
            f"does {times:.2f} times as many pairs a second, median over turns."
        )
        for times in ratio.values()
    ]
    return tuple(notes)


def _figures(rates: dict[str, float], crowded: dict[str, tuple[float, str]]) -> dict[str, float]:
    longest, _, close, reopen = (value for value, _ in crowded.values())
    return {
        "fsync_ms": 1e3 / rates[FSYNC],
        "memory_pairs_per_second": rates[MEMORY],
        "stored_pairs_per_second": rates[STORED],
        **{f"threads_{count}_pairs_per_second": rates[_threads(count)] for count in THREADS},
        "batched_pairs_per_second": rates[BATCHED],
        "longest_call_ms": longest,
        "close_seconds": close,
        "load_seconds": reopen,
    }


def _once(what: str, value: float, unit: str) -> dict[str, Cell]:
    return {"what": what, "median": value, "best": None, "unit": unit, "fsyncs_per_pair": None}


def _threads(count: int) -> str:
    return f"stored, {count} threads"


def _tasks(folder: Path, sizes: BenchSizes, stack: ExitStack) -> dict[str, Callable[[int], Run]]:
    """Everything that takes turns; each with a learner of its own, which stays open."""

    def stored(name: str) -> LinUCB:
        return stack.enter_context(pairs.learner(folder / name))

    count = sizes.stored_pairs
    tasks: dict[str, Callable[[int], Run]] = {
        FSYNC: partial(_timed, count, partial(_append, folder / "yardstick", count)),
        MEMORY: partial(_timed, count, partial(pairs.play, pairs.learner(), count)),
        STORED: partial(_timed, count, partial(pairs.play, stored("one"), count)),
    }
    for threads in THREADS:
        share = partial(_play_threads, stored(f"threads-{threads}"), threads, count)
        tasks[_threads(threads)] = partial(_timed, count, share)
    whole = BATCH * max(1, count // BATCH)
    tasks[BATCHED] = partial(_timed, whole, partial(_play_batches, stored("batches"), whole))
    if sizes.baseline is not None:
        tasks[BASELINE] = partial(_play_baseline, sizes.baseline, folder, count)
    return tasks


def _timed(count: int, action: Callable[[], object], _repeat: int) -> Run:
    return Run(rounds=count, seconds=seconds_of(action), regret=0.0)


def _append(path: Path, count: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(count):
            os.write(file, LINE)
            os.fsync(file)
    finally:
        os.close(file)


def _play_threads(bandit: LinUCB, threads: int, count: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        shares = [pool.submit(pairs.play, bandit, count // threads) for _ in range(threads)]
        for share in shares:
            share.result()


def _play_batches(bandit: LinUCB, count: int) -> None:
    offered = (pairs.sets() * (BATCH // pairs.SETS + 1))[:BATCH]
    for _ in range(count // BATCH):
        decisions = bandit.choose_many(offered)
        bandit.learn_many([(one, 1.0 if turn % 2 else -1.0) for turn, one in enumerate(decisions)])


def _play_baseline(checkout: Path, folder: Path, count: int, repeat: int) -> Run:
    source = checkout.resolve() / "src"
    printed = workload.python(
        "-P",
        str(Path(pairs.__file__)),
        str(folder / f"baseline-{repeat}"),
        str(count),
        env={"PYTHONPATH": str(source)},
    )
    found = json.loads(printed.splitlines()[-1])
    if source not in Path(found["discreet"]).parents:
        raise ParameterError("baseline", f"is {checkout}, which has no src/discreet; give another")
    return Run(rounds=count, seconds=found["seconds"], regret=0.0)


def _crowded(path: Path, sizes: BenchSizes) -> dict[str, tuple[float, str]]:
    """Of a learner with many waiting decisions: its calls, and closing and loading it."""
    bandit = pairs.learner(path, max_pending=int(ROOM * sizes.waiting))
    offered = (pairs.sets() * (WAITING_BATCH // pairs.SETS + 1))[:WAITING_BATCH]

    def fill() -> None:
        for made in range(0, sizes.waiting, WAITING_BATCH):
            bandit.choose_many(offered[: sizes.waiting - made])

    filled = seconds_of(fill)
    longest = _longest_call(bandit, sizes.waiting_calls)
    closed = seconds_of(bandit.close)
    start = time.perf_counter()
    again = load(path)
    opened = time.perf_counter() - start
    again.close()
    return {
        f"longest call, {sizes.waiting:,} waiting": (1e3 * longest, "ms"),
        f"choose_many, {sizes.waiting:,} decisions": (filled, "s"),
        f"close, {sizes.waiting:,} waiting": (closed, "s"),
        f"load, {sizes.waiting:,} waiting": (opened, "s"),
    }


def _longest_call(bandit: LinUCB, calls: int) -> float:
    offered, times = pairs.sets(), []
    for turn in range(calls // 2):
        start = time.perf_counter()
        decision = bandit.choose(offered[turn % pairs.SETS])
        chosen = time.perf_counter()
        bandit.learn(decision, 1.0)
        times += [chosen - start, time.perf_counter() - chosen]
    return max(times)
