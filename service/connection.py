"""Connections: how many a process keeps, and for how long one may leave it waiting."""

from asyncio import BaseTransport, TimerHandle, Transport
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

# In the scope's `state` of requests that come by a connection beyond the limit.
CROWDED = "crowded"
# So many beyond it are told so, and probes by them are answered; those that follow are cut off.
RESERVE = 100


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

    def connection_made(self, transport: BaseTransport) -> None:
        """Take a connection, or cut it off where there are too many."""
        super().connection_made(cast(Transport, transport))  # as uvicorn has its type
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
