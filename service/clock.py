"""The database's clock: the only clock that leases and time stamps are judged by.

Times are stored as seconds since 1970 (UTC) in a double, which both databases can
compare and add to; `as_datetime` turns one into what the API shows.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement


class now(FunctionElement[float]):  # noqa: N801 - reads as the SQL function that it is
    """Seconds since 1970 by the database's clock, at the moment the statement runs."""

    type = Double()
    inherit_cache = True


@compiles(now, "postgresql")
def _postgresql_now(element: now, compiler: SQLCompiler, **kwargs: Any) -> str:
    # clock_timestamp, not now(): a transaction that waited for a lock must not see old time.
    return "extract(epoch from clock_timestamp())::double precision"


@compiles(now, "sqlite")
def _sqlite_now(element: now, compiler: SQLCompiler, **kwargs: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


def as_datetime(seconds: float) -> datetime:
    """Return the UTC time of `seconds` since 1970, to the millisecond."""
    return datetime.fromtimestamp(round(seconds, 3), tz=UTC)
