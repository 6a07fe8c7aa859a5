"""No way in for web pages of others while the API asks for no key.

A page from anywhere may make a browser send requests to a loopback address, and by a name that it
has pointed there (DNS rebinding) may even read the answers. Browsers say where a request comes
from, in `Sec-Fetch-Site` or `Origin`, and under which name they know the server, in `Host`.
"""

import re
from ipaddress import ip_address

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http import error_handlers
from service.http.problems import ProblemCode, ProblemError

_DETAIL = (
    "Without API keys this service answers on its own machine only: by the name localhost or a "
    "loopback address, and not to web pages of others. `vnce serve --require-keys` serves others."
)
# RFC 9110, 7.2: a name or address, in brackets if it has colons, and maybe a port.
_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::\d+)?")


def guard_origin(app: Starlette) -> None:
    """Have `app` refuse requests of others; call it before the app answers its first."""
    # The innermost: a refusal is logged, and gets its headers, like any other answer.
    app.user_middleware.append(Middleware(OwnPagesMiddleware))


class OwnPagesMiddleware:
    """Answers 403 to requests under another name than this machine's own, or from other pages."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and not _is_own(request := Request(scope)):
            problem = ProblemError(ProblemCode.FOREIGN_ORIGIN, _DETAIL)
            answer = await error_handlers.answer(request, problem)
            await answer(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _is_own(request: Request) -> bool:
    host = request.headers.get("host", "")
    if not _is_loopback(host):
        return False
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:  # RFC 6454, 6.1
        return False
    # Whoever follows a link to a page here reads it; the page that has the link does not.
    is_link = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
    return is_link or request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _is_loopback(host: str) -> bool:
    parts = _HOST.fullmatch(host)
    if parts is None:
        return False
    name = parts[1] or parts[2]
    try:
        return name.lower() == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
