"""Half of the highest load for a long time: memory of every process, latencies, errors.

Memory is *flat* if, over the second half of the time, the straight line that fits best rises by
less than 5% of the mean, for every process. The first half is for caches and pools to fill.
"""

import os
from typing import Any

import numpy as np
import psutil

from benchmarks.service import servers
from benchmarks.service.load import Asked, play
from benchmarks.service.workload import BANDIT, ServiceSizes
from benchmarks.service.wrk import highest
from benchmarks.speed.results import BenchSection, Cell

_SHARE = 0.5
_WAIT = 5.0  # seconds that rewards are waited for: events close while others come
_MOST_GROWTH = 0.05
_MIB = 2**20
_RANK = f"/v1/bandits/{BANDIT}/rank"


def soak(sizes: ServiceSizes) -> BenchSection:
    """The service with SQLite and its writer, at half of its highest load."""
    pieces = max(2, round(sizes.soak / sizes.soak_piece))
    with servers.folder() as data, servers.discreet(data / "d") as service:
        service.make_bandit(wait_seconds=_WAIT)
        common: dict[str, Any] = {
            "kind": "rank", "port": service.port, "key": service.key, "path": _RANK,
            "connections": sizes.connections,
        }  # fmt: skip
        play(Asked(seconds=1.0, **common))  # kernels may have to be compiled
        top = highest(Asked(warmup=sizes.warmup, seconds=sizes.seconds, **common))
        rate = _SHARE * top["rate"]
        rows: list[dict[str, Cell]] = []
        for _ in range(pieces):
            found = play(Asked(rate=rate, seconds=sizes.soak_piece, **common))
            rows.append(_row(len(rows), sizes, found, service.process.pid))
        closed = service.closed()
    growth = {name: _growth([float(row[name] or 0.0) for row in rows]) for name in _PROCESSES}
    flat = all(abs(one) < _MOST_GROWTH for one in growth.values())
    errors = sum(int(row["errors"] or 0) for row in rows)
    return BenchSection(
        name="soak",
        title=f"{sizes.soak / 60:.3g} minutes at {rate:.0f} ranks a second, half of the highest",
        rows=tuple(rows),
        notes=(
            f"Memory is {'flat' if flat else 'not flat'}: over the second half it changed by "
            + ", ".join(f"{100 * one:+.1f}% ({name})" for name, one in growth.items())
            + f"; flat is less than {100 * _MOST_GROWTH:.0f}%.",
            f"{errors} errors; {closed} events closed by the end.",
            "Memory: resident set in MiB at the end of each piece. p50, p99 in ms.",
        ),
        figures={
            "soak_errors": float(errors),
            "soak_growth": max(abs(one) for one in growth.values()),
        },
    )


_PROCESSES = ("service (MiB)", "writer (MiB)")


def _row(place: int, sizes: ServiceSizes, found: dict[str, Any], pid: int) -> dict[str, Cell]:
    parent = psutil.Process(pid)
    writers = [one for one in parent.children(recursive=True) if one.is_running()]
    wrong = sum(count for status, count in found["statuses"].items() if status != "201")
    return {
        "minute": (place + 1) * sizes.soak_piece / 60.0,
        "ranks": found["count"],
        "errors": wrong,
        "p50": found["p50_ms"],
        "p99": found["p99_ms"],
        _PROCESSES[0]: parent.memory_info().rss / _MIB,
        _PROCESSES[1]: sum(one.memory_info().rss for one in writers) / _MIB,
        "load": os.getloadavg()[0],
    }


def _growth(values: list[float]) -> float:
    """How much the best straight line rises over the second half, as a share of its mean."""
    late = np.array(values[len(values) // 2 :])
    if len(late) < 2:  # two points make a line
        return 0.0
    slope = float(np.polyfit(np.arange(len(late)), late, 1)[0])
    return slope * (len(late) - 1) / float(late.mean())
