"""Connections to PostgreSQL that give up a server which takes questions and answers nothing.

A host that vanished is given up by its kernel's TCP. That of a server which hangs, being stopped or
out of disk, acknowledges everything, and libpq waits for it for ever: so would every thread of the
API that asked it.
"""

import time
from typing import Any

from psycopg import Connection, OperationalError
from psycopg.abc import RV, PQGen
from psycopg.errors import ConnectionTimeout

# So long after a server was given up nobody tries to connect: each of the API's threads would wait
# for that in turn, and behind them all who ask.
RETRY_SECONDS = 2.0


class SilentError(OperationalError):
    """The server owes an answer, and has been silent for too long."""


class Connector:
    """Connects as SQLAlchemy's event `do_connect` would have it.

    Its connections are closed, with a `SilentError`, where a server that owes an answer has sent
    nothing, and taken nothing, for `seconds`.
    """

    def __init__(self, seconds: float) -> None:
        self._given_up_at = -RETRY_SECONDS
        connector = self

        class TimedConnection(Connection[Any]):
            def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
                try:
                    return super().wait(_heard(gen, seconds), *args, **kwargs)
                except SilentError:
                    connector.give_up()
                    # What the server makes of the question is not known, nor can another follow.
                    self.pgconn.finish()
                    raise

        self._connection_class = TimedConnection

    def __call__(
        self, dialect: object, record: object, cargs: Any, cparams: Any
    ) -> Connection[Any]:
        """Return a new connection."""
        if time.monotonic() < self._given_up_at + RETRY_SECONDS:
            raise SilentError("the server answered nothing a moment ago")
        try:
            return self._connection_class.connect(*cargs, **cparams)
        except ConnectionTimeout:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Take it that the server hangs."""
        self._given_up_at = time.monotonic()


def _heard(gen: PQGen[RV], seconds: float) -> PQGen[RV]:
    """Do what `gen` does; raise `SilentError` once what it waits for was not ready for so long.

    It is told every tenth of a second whether it is.
    """
    silent_from = time.monotonic() + seconds
    try:
        waits_for = next(gen)
        while True:
            ready = yield waits_for
            if ready:
                silent_from = time.monotonic() + seconds
            elif time.monotonic() >= silent_from:
                raise SilentError(f"the server has answered nothing for {seconds:g} seconds")
            waits_for = gen.send(ready)
    except StopIteration as end:
        result: RV = end.value
        return result
