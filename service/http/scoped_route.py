"""Routes that say what an API key must be for, and refuse others before a body is read."""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.http.dependencies import get_identity
from service.http.scopes import Scope

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ScopedRoute(APIRoute):
    """A route for keys with its scope; declare it as `APIRouter(route_class=ScopedRoute)`."""

    # None: that of reading or of submitting, by the method.
    scope: ClassVar[Scope | None] = None

    def get_route_handler(self) -> Handler:
        """Return the handler behind the check."""
        handle = self.get_body_handler()

        async def handle_allowed(request: Request) -> Response:
            by_method = Scope.READ if request.method == "GET" else Scope.SUBMIT
            (await get_identity(request)).require(self.scope or by_method)
            return await handle(request)

        return handle_allowed

    def get_body_handler(self) -> Handler:
        """Return what reads the body and answers."""
        return super().get_route_handler()


class MetricsRoute(ScopedRoute):
    """A route for keys that may see how the whole service does."""

    scope = Scope.METRICS
