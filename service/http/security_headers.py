"""Headers that tell browsers what an answer may never be used for.

Answers are data: no page may frame them, no script runs in them, and no browser guesses a type
other than the one stated. Only `/docs` is a page of ours.
"""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.root_path import route_path

DOCS_PATH = "/docs"
DOCS_FILES_PATH = "/docs-files"
# A picture or report that is opened by itself may style itself and show the pictures that it holds,
# and do nothing else.
_DATA_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
)
# The page starts itself by an inline script; pictures in its style sheet are written as data URLs.
_DOCS_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": _DATA_POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    # What may be kept says so itself.
    "Cache-Control": "no-store",
}
_DOCS_HEADERS = HEADERS | {"Content-Security-Policy": _DOCS_POLICY, "Cache-Control": "no-cache"}


class SecurityHeadersMiddleware:
    """Add `HEADERS` to every answer; what an endpoint has set itself stays."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = route_path(scope)
        is_docs = path == DOCS_PATH or path.startswith(f"{DOCS_FILES_PATH}/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (_DOCS_HEADERS if is_docs else HEADERS).items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)
