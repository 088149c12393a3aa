"""Where a PostgreSQL database is: its URL, checked, and in words without its password."""

import re
from importlib import import_module
from typing import Any

from discreet.errors import BackendError, ParameterError, StoreError

_HIGHEST = 65535
_REFUSALS = {  # what a server says to a client that it will not let in, however often it asks
    r"password authentication failed|no password supplied": "the password is wrong or missing",
    r"authentication failed|no pg_hba\.conf entry": "this role may not come in from here",
    r'role ".*" does not exist': "there is no such role",
    r'database ".*" does not exist': "there is no such database",
    r"permission denied for database": "this role may not use this database",
}
_REASONS = {
    "connection refused": "nobody listens there",
    "resolve host": "its host is not known",
    "translate host name": "its host is not known",
    "timeout expired": "its host is silent",
}
_NOT_ALLOWED = frozenset({"28000", "28P01", "3D000", "42501"})  # SQLSTATE of the same


class RefusedError(StoreError):
    """A database that is there and does not let this client in: waiting does not help.

    Attributes:
        why: in a few words, without names.
    """

    def __init__(self, why: str) -> None:
        super().__init__("database", f"refuses this client: {why}")
        self.why = why


def driver() -> Any:  # noqa: ANN401  # an optional library
    """psycopg; `BackendError` if it is not installed."""
    try:
        return import_module("psycopg")
    except ImportError:
        raise BackendError(
            "database", "needs psycopg; run pip install 'discreet[serve,postgresql]'"
        ) from None


def parts_of(address: str) -> dict[str, str]:
    """What a URL says: host, port, dbname, user and others.

    Args:
        address: a PostgreSQL URL.

    Raises:
        ParameterError: the driver cannot read it, or a port is none. It repeats nothing of it.
    """
    psycopg = driver()
    try:
        found = import_module("psycopg.conninfo").conninfo_to_dict(address)
    except psycopg.Error:
        raise ParameterError(
            "database",
            "is no URL that PostgreSQL's driver can read; give postgresql://user@host:5432/name, "
            "with %40 and the like for special characters",
        ) from None
    parts = {name: str(value) for name, value in found.items()}
    for port in filter(None, parts.get("port", "").split(",")):
        if not (port.isascii() and port.isdecimal() and 0 < int(port) <= _HIGHEST):
            raise ParameterError("database", f"has the port {port}; give one from 1 to {_HIGHEST}")
    return parts


def named(address: str) -> str:
    """A URL in words, for logs and for whoever starts the service; never with its password."""
    parts = parts_of(address)
    name, user = parts.get("dbname"), parts.get("user")
    what = f"database {name or user!r}" if name or user else "the default database"
    whose = f" as {user!r}" if user else ""
    host = parts.get("host") or parts.get("hostaddr") or "the local socket"
    return f"{what}{whose} at {host}, port {parts.get('port') or '5432'}"


def refusal_of(error: Exception) -> RefusedError | None:
    """The same as an error of ours, if it is the driver's for a client that is not let in.

    Args:
        error: of the driver.
    """
    said = str(error)
    for pattern, why in _REFUSALS.items():
        if "FATAL" in said and re.search(pattern, said):
            return RefusedError(why)
    if getattr(error, "sqlstate", None) in _NOT_ALLOWED:
        return RefusedError("this role may not do what is needed")
    return None


def reason_of(error: Exception) -> str:
    """Why a database does not answer, without names: its kind, or what that means.

    Args:
        error: of the driver.
    """
    said = str(error).lower()
    for known, reason in _REASONS.items():
        if known in said:
            return reason
    return type(error).__name__
