"""The database's clock: the only clock that leases and time stamps are judged by.

Times are stored as seconds since 1970 (UTC) in a double, which both databases can
compare and add to; `as_datetime` turns one into what the API shows.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement


class _Now(FunctionElement[float]):
    type = Double()
    inherit_cache = True


def now() -> ColumnElement[float]:
    """Return what is, in SQL, the seconds since 1970 at the moment that the statement runs."""
    return _Now()


@compiles(_Now, "postgresql")
def _postgresql_now(element: _Now, compiler: SQLCompiler, **kwargs: Any) -> str:
    # clock_timestamp, not now(): a transaction that waited for a lock must not see old time.
    return "extract(epoch from clock_timestamp())::double precision"


@compiles(_Now, "sqlite")
def _sqlite_now(element: _Now, compiler: SQLCompiler, **kwargs: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


def as_datetime(seconds: float) -> datetime:
    """Return the UTC time of `seconds` since 1970, to the millisecond."""
    return datetime.fromtimestamp(round(seconds, 3), tz=UTC)
