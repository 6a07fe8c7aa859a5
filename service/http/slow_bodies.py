"""Bodies that do not come: nobody holds memory, files and a request open by sending nothing."""

import time

from anyio import fail_after
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.problems import ProblemCode, ProblemError

# On average, once a body has been waited for; slower than any line that is meant to carry tables.
LEAST_BYTES_PER_SECOND = 10_000


class SlowBodyMiddleware:
    """Ends the wait for a body with 408 when its client is silent for `silence_seconds`.

    So it does when the waits for it add up to more than that and `LEAST_BYTES_PER_SECOND` allow
    for what has come: a byte now and then does not count as a body. What the service itself takes
    to deal with what has come does not count.
    """

    def __init__(self, app: ASGIApp, silence_seconds: float) -> None:
        self.app = app
        self._silence_seconds = silence_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Whether some of the body is to come, and no answer has begun.
        is_awaited = True
        waited, num_bytes = 0.0, 0

        async def receive_in_time() -> Message:
            nonlocal is_awaited, waited, num_bytes
            if not is_awaited:
                return await receive()
            allowed = self._silence_seconds + num_bytes / LEAST_BYTES_PER_SECOND - waited
            began = time.monotonic()
            try:
                with fail_after(min(allowed, self._silence_seconds)):
                    message = await receive()
            except TimeoutError as error:
                raise _too_slow(num_bytes) from error
            waited += time.monotonic() - began
            num_bytes += len(message.get("body", b""))
            is_awaited = message.get("more_body", False)
            return message

        async def send_and_note(message: Message) -> None:
            nonlocal is_awaited
            is_awaited = False
            await send(message)

        await self.app(scope, receive_in_time, send_and_note)


def _too_slow(num_bytes: int) -> ProblemError:
    return ProblemError(
        ProblemCode.REQUEST_TIMEOUT,
        f"After {num_bytes} bytes of the body nothing more came for too long, or too little; "
        "nothing was stored. How long is waited is set by VNCE_SILENCE_SECONDS.",
        # What comes of it later would be taken for another request.
        headers={"Connection": "close"},
    )
