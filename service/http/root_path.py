"""The prefix of all paths under which a proxy shows the service, such as /vnce."""

from contextvars import ContextVar

from starlette.types import ASGIApp, Receive, Scope, Send

# Of the request at hand; what has no request, such as a worker, has no prefix.
_prefix: ContextVar[str] = ContextVar("root_path", default="")


class RootPathMiddleware:
    """Serves all paths below a prefix, and without it too: probes ask the process itself.

    The proxy leaves the prefix where it is, and every answer names addresses with it.
    """

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self.app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            if self._root_path:
                scope["root_path"] = self._root_path
            _prefix.set(scope.get("root_path", ""))
        await self.app(scope, receive, send)


def address_of(path: str) -> str:
    """Return the address of a path such as /v1/jobs, without scheme and host."""
    return _prefix.get() + path


def route_path(scope: Scope) -> str:
    """Return the path of a request without the prefix, as routes are matched against it."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    return path.removeprefix(prefix) if path.startswith(f"{prefix}/") else path
