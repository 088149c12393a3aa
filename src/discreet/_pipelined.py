"""Transactions in PostgreSQL that wait for the server as seldom as they can.

Statements are sent without waiting for the answers to those before them (a pipeline), so a
transaction waits where it reads, and once for its commit. What follows a statement that failed is
skipped by the server, the commit too.
"""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def transaction(connection: Any) -> Iterator[None]:  # noqa: ANN401  # of an optional library
    """All or nothing; rows that are fetched inside are waited for, and all else at the end.

    Args:
        connection: of psycopg, with autocommit, and in no transaction.
    """
    try:
        with connection.pipeline():
            connection.execute("BEGIN")
            yield
            connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: Any) -> None:  # noqa: ANN401  # psycopg is an extra
    """End a transaction that failed; a connection that cannot do that is closed."""
    if connection.closed:
        return
    try:
        connection.execute("ROLLBACK")
    except Exception:  # noqa: BLE001  # what failed before is what counts
        with contextlib.suppress(Exception):
            connection.close()
