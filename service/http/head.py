"""HEAD for every path that has GET."""

from anyio import CancelScope
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadMiddleware:
    """Answer HEAD as GET would, and stop before the body is made."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        has_ended = False
        with CancelScope() as answering:

            async def send_head(message: Message) -> None:
                nonlocal has_ended
                if message["type"] != "http.response.body":
                    await send(message)
                elif not has_ended:  # what has no wait before its second piece sends that too
                    has_ended = True
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    answering.cancel()

            inner = {**scope, "method": "GET"}
            try:
                await self.app(inner, receive, send_head)
            finally:
                scope["route"] = inner.get("route")  # for those outside, who log it
