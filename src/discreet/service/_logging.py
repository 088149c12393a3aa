"""Logs for machines: one JSON object a line, on standard error. Never a body or a key."""

import json
import logging
import sys
from typing import Any

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        facts.update({name: value for name, value in vars(record).items() if name not in _USUAL})
        if record.exc_info and record.exc_info[0] is not None:
            facts["error"] = record.exc_info[0].__name__  # its message may hold data
        return json.dumps(facts, default=str)


def start(level: str) -> None:
    """Send all logs of the process to standard error.

    Args:
        level: debug, info, warning or error.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # its warnings quote the server's words
    logging.getLogger("discreet").setLevel(level.upper())
