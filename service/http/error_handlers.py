"""One place where exceptions become problem documents, and every answer gets its request id."""

import logging
from uuid import uuid4

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import logs
from service.db.database import UNREACHABLE
from service.db.storage_full import is_storage_full
from service.http import security_headers
from service.http.problems import (
    KINDS,
    MEDIA_TYPE,
    ProblemCode,
    ProblemError,
    ProblemItem,
    problem_document,
)
from service.http.validation_items import validation_items
from service.http.words import counted

RETRY_AFTER_SECONDS = "5"
# A body of a million wrong items is not answered by a million complaints.
MAX_ITEMS = 100
_CODE_OF_STATUS = {
    400: ProblemCode.VALIDATION_FAILED,
    404: ProblemCode.NOT_FOUND,
    405: ProblemCode.METHOD_NOT_ALLOWED,
    413: ProblemCode.PAYLOAD_TOO_LARGE,
    415: ProblemCode.UNSUPPORTED_MEDIA_TYPE,
}
logger = logging.getLogger("service")


class RequestIdMiddleware:
    """Give every request an id: in its scope, its answer's `X-Request-ID` and what is logged."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        with logs.bound(request_id=request_id):
            await self.app(scope, receive, send_with_id)


# What may be raised before a request reaches its route.
ANSWERED = (ProblemError, *UNREACHABLE)


def install(app: FastAPI) -> None:
    """Register the handlers and the middleware on `app`."""
    # A path with a slash too many leads nowhere, like any other that is not ours. A redirect would
    # name the address that a proxy asked for, and lead a client with its key from TLS to none.
    app.router.redirect_slashes = False
    for kind in ANSWERED:
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(OSError, _on_system_error)
    app.add_exception_handler(Exception, _on_mistake)
    app.add_middleware(RequestIdMiddleware)


def _respond(
    request: Request,
    code: ProblemCode,
    detail: str,
    *,
    errors: list[ProblemItem] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    document = problem_document(
        code,
        detail,
        errors=errors,
        instance=request.url.path,
        request_id=_request_id(request),
    )
    return JSONResponse(
        document.model_dump(mode="json"),
        status_code=KINDS[code].status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


async def answer(request: Request, error: Exception) -> JSONResponse:
    """Return the answer to an exception of one of the kinds `ANSWERED`."""
    if isinstance(error, ProblemError):
        return _respond(
            request, error.code, error.detail, errors=error.errors, headers=error.headers
        )
    return _on_database_trouble(request, error)


async def _on_invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    items = validation_items(error)
    detail = f"{counted(len(items), 'part')} of the request cannot be used; see `errors`."
    return _respond(request, ProblemCode.VALIDATION_FAILED, detail, errors=items[:MAX_ITEMS])


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODE_OF_STATUS.get(error.status_code, ProblemCode.INVALID_REQUEST)
    details = {
        # FastAPI's word for a body that is no UTF-8 or nested too deeply.
        ProblemCode.VALIDATION_FAILED: "The body cannot be read as JSON.",
        ProblemCode.NOT_FOUND: "No endpoint has this path; /docs lists them.",
        ProblemCode.METHOD_NOT_ALLOWED: f"{request.method} does not apply to this path.",
    }
    headers = dict(error.headers or {})
    if code is ProblemCode.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_allowed_methods(request))
    return _respond(request, code, details.get(code, str(error.detail)), headers=headers)


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of every route of this path; Starlette tells those of the first."""
    allowed = [
        method
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        for route in request.app.routes
        if route.matches({**request.scope, "method": method})[0] is Match.FULL
    ]
    # Where no route is of the path it is one of the documentation page's files.
    allowed = allowed or ["GET"]
    return ["HEAD", *allowed] if "GET" in allowed else allowed


def _on_database_trouble(request: Request, error: Exception) -> JSONResponse:
    if is_storage_full(error):
        return _no_room(request)
    # Without a trace, which would be the same at every request of a long outage.
    reason = str(getattr(error, "orig", None) or error)
    request_id = _request_id(request)
    logger.error(
        "the database did not answer, request %s",
        request_id,
        extra={"request_id": request_id, "reason": reason},
    )
    return _respond(
        request,
        ProblemCode.UNAVAILABLE,
        f"The database does not answer; try again in {RETRY_AFTER_SECONDS} seconds.",
        headers={"Retry-After": RETRY_AFTER_SECONDS},
    )


async def _on_system_error(request: Request, error: Exception) -> JSONResponse:
    # Uploads pass through temporary files, whose disk may be another than the database's.
    return _no_room(request) if is_storage_full(error) else await _on_mistake(request, error)


def _no_room(request: Request) -> JSONResponse:
    return _respond(
        request, ProblemCode.STORAGE_FULL, "The service has no room left; nothing was stored."
    )


async def _on_mistake(request: Request, error: Exception) -> JSONResponse:
    request_id = _request_id(request)
    logger.error(
        "unhandled exception, request %s",
        request_id,
        exc_info=error,
        extra={"request_id": request_id},
    )
    return _respond(
        request,
        ProblemCode.INTERNAL,
        "The mistake is ours and has been logged under this request id.",
        headers={
            # The handler of last resort runs outside the middleware that sets them elsewhere.
            "X-Request-ID": str(request_id),
            **security_headers.HEADERS,
            # The server hangs up after it; whoever sends another request is to know.
            "Connection": "close",
        },
    )


def _request_id(request: Request) -> str | None:
    known = request.scope.get("state", {}).get("request_id")
    return None if known is None else str(known)
