"""Pages of a list that is ordered by (created_at, id), newest first.

A cursor names the last item of a page, not its number: rows that come or go meanwhile make no
other item appear twice or be passed over.
"""

import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated

from fastapi import Query

from service.db.identifiers import is_id
from service.http.problems import ProblemCode, ProblemError, ProblemItem

Place = tuple[float, str]

LimitQuery = Annotated[int, Query(ge=1, le=100, description="Most items of a page, 1 to 100.")]
CursorQuery = Annotated[
    str | None,
    Query(max_length=200, description="`next_cursor` of the page before; left out: first page."),
]


def cursor_at(created_at: float, item_id: str) -> str:
    """Return the cursor of the page that follows this item."""
    return urlsafe_b64encode(f"{created_at!r} {item_id}".encode()).decode()


def place_of(cursor: str | None) -> Place | None:
    """Return (created_at, id) of the item that a cursor names; None for the first page.

    Raises `ProblemError` for a text that is no cursor.
    """
    if cursor is None:
        return None
    try:
        created_at, item_id = urlsafe_b64decode(cursor.encode("ascii")).decode("ascii").split(" ")
        place = (float(created_at), item_id)
    except ValueError:
        raise invalid_cursor() from None
    if not (math.isfinite(place[0]) and is_id(place[1])):
        raise invalid_cursor()
    return place


def invalid_cursor() -> ProblemError:
    """Return the answer to a cursor that this service has not made."""
    return ProblemError(
        ProblemCode.VALIDATION_FAILED,
        "`cursor` must be the `next_cursor` of a page of this list.",
        errors=[ProblemItem(message="This is no cursor of this list.", parameter="cursor")],
    )
