"""Connections: how many a process keeps, how long one may leave it waiting, and what it sends."""

import logging
import socket
from asyncio import BaseTransport, TimerHandle, Transport
from contextlib import suppress
from typing import Any, cast
from uuid import uuid4

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.http import security_headers
from service.http.http_reader import HttpReader
from service.http.problems import MEDIA_TYPE, ProblemCode, problem_document

# In the scope's `state` of requests that come by a connection beyond the limit.
CROWDED = "crowded"
# So many beyond it are told so, and probes by them are answered; those that follow are cut off.
RESERVE = 100
# What a connection has taken is seen here once so little is left of it that is not yet on its way.
UNSENT_BYTES = 2**16

logger = logging.getLogger("service")


class BoundedConnection(H11Protocol):
    """A connection that is cut off once it has left the server waiting for `silence_seconds`.

    It does so while it is to send a request, whose head counts as a whole, and while it takes
    nothing of what it has been sent. For the body of a request it is the application that waits.
    """

    silence_seconds: float
    max_connections: int

    _timer: TimerHandle | None = None
    # Bytes that it had not taken when the timer was set.
    _num_untaken = 0

    def __init__(self, *arguments: Any, **named: Any) -> None:  # whatever uvicorn hands on
        super().__init__(*arguments, **named)
        self.conn = HttpReader()

    def connection_made(self, transport: BaseTransport) -> None:
        """Take a connection, or cut it off where there are too many."""
        super().connection_made(cast(Transport, transport))  # as uvicorn has its type
        _keep_little_in_the_system(self.transport)
        num_beyond = len(self.connections) - self.max_connections
        if num_beyond > RESERVE:
            self.transport.abort()
        elif num_beyond > 0:
            self.app_state = {**self.app_state, CROWDED: True}
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        super().data_received(data)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP by a problem document, and hang up."""
        request_id = uuid4().hex
        logger.warning("what came is no HTTP request", extra={"request_id": request_id})
        document = problem_document(
            ProblemCode.INVALID_REQUEST,
            "What came is no HTTP request that this service reads. Heads are bounded, and a body "
            "has either a length or a transfer encoding.",
            request_id=request_id,
        )
        body = document.model_dump_json().encode()
        headers = {
            **security_headers.HEADERS,
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "Connection": "close",
            "X-Request-ID": request_id,
        }
        start = h11.Response(status_code=400, headers=list(headers.items()), reason=b"Bad Request")
        # Where an answer has begun there is no other, and the answer to HEAD has no body.
        with suppress(h11.LocalProtocolError):
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Write no more: what was written is not taken."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Write again."""
        super().resume_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_timer()

    def _watch(self) -> None:
        """Let time run while nothing happens here until the client does something."""
        is_asking = self.cycle is not None and not self.cycle.response_complete
        if is_asking and not self.flow.write_paused:
            self._stop_timer()
        elif self._timer is None:
            self._num_untaken = self.transport.get_write_buffer_size()
            self._timer = self.loop.call_later(self.silence_seconds, self._judge)

    def _judge(self) -> None:
        self._timer = None
        if self.transport.get_write_buffer_size() < self._num_untaken:
            self._watch()  # a slow reader reads on
        else:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _keep_little_in_the_system(transport: Transport) -> None:
    """Have the system take only what it may soon send, so that slow readers are seen to read.

    By itself it takes megabytes, and asks for more when a third of them is gone: for a reader of
    50 kB a second that is longer than a silence. How fast others are sent to stays as it is.
    """
    connection = transport.get_extra_info("socket")
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
