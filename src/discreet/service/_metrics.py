"""Numbers for Prometheus: requests, and public counts of events and releases. No raw data."""

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

if TYPE_CHECKING:
    from discreet.service._core import Core

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


# Whether and when rewards and activations come is protected, and that somebody was erased is for
# administrators: nobody may count these requests.
SILENT = frozenset(
    {
        "rewards",
        "activate",
        "personalizer_reward",
        "personalizer_activate",
        "erase",
        "dashboard_erase",
    }
)


class Metrics:
    """What one process counts."""

    def __init__(self) -> None:
        """Start at zero."""
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "discreet_requests",
            "Requests by route and status.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "discreet_request_seconds",
            "How long requests took.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        gauges = {
            "events": "Events of a bandit.",
            "closed": "Events that are closed: rows of the learner.",
            "release": "The number of the last release.",
            "release_rows": "Rows in the last release.",
            "release_made": "When it was made, in seconds since 1970.",
            "running": "1 if the bandit decides and learns, 0 if it was restored or failed.",
        }
        self._gauges = {
            name: Gauge(f"discreet_{name}", help, ("bandit",), registry=self._registry)
            for name, help in gauges.items()  # noqa: A001  # what Prometheus calls it
        }
        self._ready = Gauge(
            "discreet_database_up", "1 if the database answers.", registry=self._registry
        )
        self._writer = Gauge(
            "discreet_writer_up", "1 if the writer gave a sign lately.", registry=self._registry
        )
        self._cells: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request, but for those that are silent: also one that fails tells of one."""
        if route in SILENT:
            return
        known = method if method in _METHODS else "other"
        cell = self._cells.get((route, known, status))
        if cell is None:
            requests = self._requests.labels(route, known, str(status))
            cell = self._cells[route, known, status] = (requests, self._seconds.labels(route))
        cell[0].inc()
        cell[1].observe(seconds)

    def text(self, core: "Core") -> tuple[bytes, str]:
        """Everything, as Prometheus reads it, and its content type."""
        health = core.health()
        self._ready.set(health["database"] == "ok")
        self._writer.set(health["writer"] == "ok")
        for bandit in core.bandits():
            release = bandit.ranker.release
            values = {
                "events": bandit.events,
                "closed": bandit.closed,
                "release": release.number,
                "release_rows": release.rows,
                "release_made": bandit.made,
                "running": bandit.state == "running",
            }
            for name, value in values.items():
                self._gauges[name].labels(bandit.name).set(value)
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


_METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})
