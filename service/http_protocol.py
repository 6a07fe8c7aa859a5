"""The HTTP protocol that every server of ours speaks: uvicorn's quick one, bounded.

httptools parses requests in C and keeps a header however long it is. Uvicorn's other parser, h11,
bounds headers and takes as long for a short request as answering it.
"""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from service.problems import MEDIA_TYPE, ProblemCode, problem_document
from service.security_headers import HEADERS

# As much as h11 takes, and four times what nginx does unless told otherwise.
MOST_HEAD_BYTES = 64 * 1024


class BoundedHttpToolsProtocol(HttpToolsProtocol):
    """Refuses a request whose target and headers are too long, at its start or behind its body.

    What may come without bound is a body, of which the application judges. Between two pieces of
    it, as before the first, no more than `MOST_HEAD_BYTES` and what one read brings are kept.
    """

    _num_bytes_kept = 0

    def data_received(self, data: bytes) -> None:
        """Parse what has come in."""
        self._num_bytes_kept += len(data)
        super().data_received(data)
        if self._num_bytes_kept > MOST_HEAD_BYTES and not self.transport.is_closing():
            message = f"The target and headers of a request have at most {MOST_HEAD_BYTES} bytes."
            self.logger.warning(message)
            self.send_400_response(message)

    def on_headers_complete(self) -> None:
        """Hand the request over; what follows is its body."""
        self._num_bytes_kept = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Hand a piece of the body over."""
        self._num_bytes_kept = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Await the next request of the connection."""
        self._num_bytes_kept = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be read as a request with a problem document, and hang up."""
        document = problem_document(ProblemCode.INVALID_REQUEST, msg, instance=None)
        content = document.model_dump_json().encode()
        headers = HEADERS | {
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(content)),
            "Connection": "close",
        }
        lines = [f"{name}: {value}\r\n".encode() for name, value in headers.items()]
        self.transport.write(b"".join([STATUS_LINE[400], *lines, b"\r\n", content]))
        self.transport.close()
