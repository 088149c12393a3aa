"""What is measured: decisions and rewards of each server, two rankers beside one, the writer."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.service import servers
from benchmarks.service.load import Asked, play
from benchmarks.service.workload import BANDIT, BATCH, ServiceSizes
from benchmarks.service.wrk import highest, highest_of
from benchmarks.speed.results import BenchSection, Cell

_SHARE = 0.7  # of the highest load, at which latency is measured
_LONG = 3600.0  # seconds that rewards are waited for, so that nothing closes meanwhile
_SHORT = 1.0
_PATIENCE = 300.0  # seconds for the writer
_RANK = f"/v1/bandits/{BANDIT}/rank"
_REWARDS = f"/v1/bandits/{BANDIT}/rewards"


def decisions(sizes: ServiceSizes) -> BenchSection:
    """Decisions and rewards of one process each, one server after the other."""
    found = {
        "discreet, SQLite": _discreet(sizes, None),
        "discreet, PostgreSQL": _on_postgresql(sizes),
        "FastAPI + MABWiser": _fastapi(sizes),
        "Vowpal Wabbit": _vw(sizes),
    }
    first, second, third, fourth = found.values()
    figures = {
        "sqlite_ranks_per_second": first["rate"],
        "sqlite_p99_ms": first["p99_ms"],
        "sqlite_rewards_per_second": first["rewards"],
        "postgresql_ranks_per_second": second["rate"],
        "postgresql_p99_ms": second["p99_ms"],
        "postgresql_rewards_per_second": second["rewards"],
        "beside_fastapi": first["rate"] / third["rate"],
        "beside_vw": first["rate"] / fourth["rate"],
    }
    return BenchSection(
        name="decisions",
        title="one process, d = 32, 20 actions, contexts that differ; loopback",
        rows=tuple(_row(name, one) for name, one in found.items()),
        notes=(
            "ranks/s: as many as are answered, on 64 connections; asked by wrk where it is there.",
            "p50, p99 (ms): at 70% of that, at a fixed rate, counted from when a request was due.",
            f"rewards/s: in batches of {BATCH} on 4 connections, each event once.",
            "durable: an answer is given after its event is on the disk (fsync).",
        ),
        figures={name: value for name, value in figures.items() if value is not None},
    )


def _row(name: str, one: dict[str, Any]) -> dict[str, Cell]:
    return {
        "server": name,
        "ranks/s": one["rate"],
        "p50": one["p50_ms"],
        "p99": one["p99_ms"],
        "rewards/s": one["rewards"],
        "private": one["private"],
        "durable": one["durable"],
        "errors": one["errors"],
        "note": one["note"],
    }


def _loaded(sizes: ServiceSizes, port: int, **how: Any) -> dict[str, Any]:  # noqa: ANN401
    """The highest load of a server that speaks HTTP, and latencies below it."""
    common = {"port": port, "warmup": sizes.warmup, "seconds": sizes.seconds, **how}
    common["connections"] = sizes.connections
    top = highest(Asked(kind="rank", **common))
    steady = play(Asked(kind="rank", rate=_SHARE * top["rate"], collect=True, **common))
    wrong = sum(count for status, count in steady["statuses"].items() if status != "201")
    return {
        "rate": top["rate"],
        "p50_ms": steady["p50_ms"],
        "p99_ms": steady["p99_ms"],
        "events": steady["events"],
        "errors": top.get("errors", 0) + wrong,
    }


def _rewarded(port: int, path: str, events: list[str], key: str = "") -> float:
    """Rewards a second; every one of them must have been accepted."""
    asked = Asked(
        kind="rewards", port=port, connections=4, seconds=60.0, path=path, key=key, events=events
    )
    found = play(asked)
    if set(found["statuses"]) != {"207"} or found["accepted"] != BATCH * found["count"]:
        raise RuntimeError(f"not all rewards were accepted: {found['statuses']}")
    return BATCH * float(found["rate"])


def _discreet(sizes: ServiceSizes, database: str | None) -> dict[str, Any]:
    with servers.folder() as data, servers.discreet(data / "d", database=database) as service:
        service.make_bandit(wait_seconds=_LONG)
        found = _loaded(sizes, service.port, path=_RANK, key=service.key)
        rewards = _rewarded(service.port, _REWARDS, found["events"], service.key)
    return {
        **found,
        "rewards": rewards,
        "private": "yes",
        "durable": "yes",
        "note": "joint differential privacy; keys, limits, idempotent events",
    }


def _on_postgresql(sizes: ServiceSizes) -> dict[str, Any]:
    with servers.postgresql() as database:
        return _discreet(sizes, database)


def _fastapi(sizes: ServiceSizes) -> dict[str, Any]:
    with servers.module("fastapi_mabwiser", http=True) as port:
        found = _loaded(sizes, port, path="/rank")
        rewards = _rewarded(port, "/rewards", found["events"])
    return {
        **found,
        "rewards": rewards,
        "private": "no",
        "durable": "no",
        "note": "in memory, one process of uvicorn; LinUCB for each action; no keys",
    }


def _vw(sizes: ServiceSizes) -> dict[str, Any]:
    binary = shutil.which("vw")
    with contextlib.ExitStack() as stack:
        if binary is None:
            port = stack.enter_context(servers.module("vw_server", http=False))
        else:
            port = stack.enter_context(servers.vw_daemon(binary))
        common: dict[str, Any] = {
            "kind": "vw", "port": port, "seconds": sizes.seconds, "warmup": sizes.warmup,
            "connections": 8,
        }  # fmt: skip
        top = play(Asked(**common))
        steady = play(Asked(rate=_SHARE * top["rate"], **common))
    what = (
        "the wheel has no vw program: its library behind a socket in Python, in its text format"
        if binary is None
        else "its own daemon, in its text format"
    )
    return {
        "rate": top["rate"],
        "p50_ms": steady["p50_ms"],
        "p99_ms": steady["p99_ms"],
        "errors": 0,
        "rewards": None,
        "private": "no",
        "durable": "no",
        "note": f"{what}; predicts only: no event, no HTTP, no keys",
    }


def rankers(sizes: ServiceSizes) -> BenchSection:
    """Two rankers on one PostgreSQL database beside one of them, with a writer."""
    with _two_rankers() as (one, two):
        one.make_bandit(wait_seconds=_LONG)
        time.sleep(2.0)  # until the other has seen it
        asked = [
            Asked(
                kind="rank",
                port=service.port,
                key=service.key,
                path=_RANK,
                connections=sizes.connections,
                seconds=sizes.seconds,
                warmup=sizes.warmup,
            )
            for service in (one, two)
        ]
        alone = highest(asked[0])
        together = highest_of(asked)
    both = sum(found["rate"] for found in together)
    errors = sum(found.get("errors", 0) for found in (alone, *together))
    return BenchSection(
        name="rankers",
        title="rankers on one PostgreSQL database, one bandit, a writer beside them",
        rows=(
            {"rankers": 1, "ranks/s": alone["rate"], "ratio": 1.0, "p99 (ms)": alone["p99_ms"]},
            {
                "rankers": 2,
                "ranks/s": both,
                "ratio": both / alone["rate"],
                "p99 (ms)": max(found["p99_ms"] for found in together),
            },
        ),
        notes=(
            f"{errors} errors.",
            "Database, load and rankers share the cores of the machine.",
        ),
        figures={"two_beside_one": both / alone["rate"]},
    )


@contextlib.contextmanager
def _two_rankers() -> Iterator[tuple[servers.Service, servers.Service]]:
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        database, data = enter(servers.postgresql()), enter(servers.folder())
        one = enter(servers.discreet(data / "1", database=database, role="ranker"))
        two = enter(servers.discreet(data / "2", database=database, role="ranker", key=one.key))
        enter(servers.discreet(data / "3", database=database, role="writer", key=one.key))
        yield one, two


def writer(sizes: ServiceSizes) -> BenchSection:
    """How fast the writer closes events whose deadlines have passed."""
    rows: list[dict[str, Cell]] = []
    for name in ("SQLite", "PostgreSQL"):
        with contextlib.ExitStack() as stack:
            data = stack.enter_context(servers.folder())
            database = stack.enter_context(servers.postgresql()) if name != "SQLite" else None
            rows.append({"database": name, **_closing(sizes, data, database)})
    return BenchSection(
        name="writer",
        title="events past their deadline, closed by one writer",
        rows=tuple(rows),
        notes=(
            "Events were ranked while no writer ran.",
            "rows/s: from the first that was seen to be closed to the last.",
        ),
        figures={
            "sqlite_rows_per_second": float(rows[0]["rows/s"] or 0.0),
            "postgresql_rows_per_second": float(rows[1]["rows/s"] or 0.0),
        },
    )


def _closing(sizes: ServiceSizes, data: Path, database: str | None) -> dict[str, Cell]:
    with servers.discreet(data / "d", database=database, role="ranker") as service:
        service.make_bandit(wait_seconds=_SHORT)
        made = 0
        while made < sizes.backlog:
            asked = Asked(
                kind="rank",
                port=service.port,
                key=service.key,
                path=_RANK,
                connections=sizes.connections,
                seconds=5.0,
            )
            made += int(play(asked)["count"])
        time.sleep(2.0 * _SHORT)
        total = int(service.call("GET", f"/v1/bandits/{BANDIT}")["events"])
        with servers.discreet(data / "d", database=database, role="writer", key=service.key):
            first, began, ended = _watched(service, total)
    return {
        "events": total,
        "seconds": ended - began,
        "rows/s": (total - first) / max(1e-9, ended - began),
    }


def _watched(service: servers.Service, total: int) -> tuple[int, float, float]:
    """How many were closed when the first were seen to be, and when; and when all were."""
    deadline = time.monotonic() + _PATIENCE
    first, began = 0, 0.0
    while time.monotonic() < deadline:
        closed, now = service.closed(), time.perf_counter()
        if closed and not first:
            first, began = closed, now
        if closed >= total:
            return first, began, now
        time.sleep(0.02)
    raise RuntimeError("the writer did not close all events in time")
