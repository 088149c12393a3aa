"""The highest load: by wrk where it is installed, otherwise by our own client."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.service import workload
from benchmarks.service.load import Asked, play

_SCRIPT = Path(__file__).with_name("rank.lua")


def highest(asked: Asked) -> dict[str, Any]:
    """Ask as fast as answers come: requests a second, and latencies."""
    return highest_of([asked])[0]


def highest_of(several: list[Asked]) -> list[dict[str, Any]]:
    """The same of several servers at the same time."""
    if shutil.which("wrk") is None:
        if len(several) > 1:
            raise FileNotFoundError("wrk: to load two servers at a time, apt-get install wrk")
        return [{**play(several[0]), "by": "our own client"}]
    with tempfile.TemporaryDirectory() as folder:
        for seconds in (several[0].warmup, several[0].seconds):
            running = [
                _started(asked, seconds, Path(folder) / f"{place}-{seconds}")
                for place, asked in enumerate(several)
            ]
            found = [_read(process) for process in running]
    return found


def _started(asked: Asked, seconds: float, requests: Path) -> "subprocess.Popen[str]":
    bodies = [body.decode() for body in workload.rank_bodies(512, asked.port)]
    requests.write_text("\n".join([asked.path, asked.key, *bodies]) + "\n", encoding="utf-8")
    return subprocess.Popen(  # noqa: S603  # found on the path
        [  # noqa: S607
            "wrk", "-t1", f"-c{asked.connections}", f"-d{max(1, round(seconds))}s",
            "--timeout", "30s", "-s", str(_SCRIPT), f"http://127.0.0.1:{asked.port}",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BENCH_REQUESTS": str(requests)},
    )  # fmt: skip


def _read(process: "subprocess.Popen[str]") -> dict[str, Any]:
    output, _ = process.communicate(timeout=300)
    (line,) = [one for one in output.splitlines() if one.startswith("RESULT ")]
    count, microseconds, errors, half, most = line.split()[1:]
    return {
        "count": int(count),
        "rate": 1e6 * int(count) / int(microseconds),
        "errors": int(errors),
        "p50_ms": float(half),
        "p99_ms": float(most),
        "by": "wrk",
    }
