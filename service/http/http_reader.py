"""How bytes become requests: by h11, with the bound that the documentation names."""

import h11

# Of what is kept of a request that has not come whole: its head, a chunk's, or its trailers.
MOST_HEAD_BYTES = 64 * 1024


class HttpReader(h11.Connection):
    """Reads a client's requests, and none of whose body two readers could think differently."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MOST_HEAD_BYTES)

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return what came next; raises `h11.RemoteProtocolError` if it is no HTTP."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                # A proxy that goes by the length would take the rest for another's request.
                raise h11.RemoteProtocolError("the body has both a length and a transfer encoding")
        return event
