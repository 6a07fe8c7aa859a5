"""Entity tags: answers that a client already has are not sent again."""

import hashlib
from collections.abc import Mapping

from fastapi import Request, Response
from pydantic import BaseModel

# What is at such an address never changes, so that nobody needs to ask again.
IMMUTABLE = "private, max-age=31536000, immutable"


def etag_of(sha256: str) -> str:
    """Return the strong entity tag of content with this hash."""
    return f'"{sha256}"'


def is_fresh(request: Request, etag: str) -> bool:
    """Return whether the client says, by `If-None-Match`, that it has this version."""
    known = [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]
    # RFC 9110: weak and strong tags compare as equal here.
    return "*" in known or etag in (tag.removeprefix("W/") for tag in known)


def json_response(
    request: Request, document: BaseModel, headers: Mapping[str, str], etag: str | None = None
) -> Response:
    """Return the document as JSON under an entity tag, or 304 if the client has it.

    The tag is that of the bytes sent unless one is given.
    """
    body = document.model_dump_json().encode()
    tag = etag or etag_of(hashlib.sha256(body).hexdigest())
    headers = {**headers, "ETag": tag}
    if is_fresh(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)
