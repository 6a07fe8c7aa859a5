"""How operations declare their errors, so that the specification lists every one of them."""

from collections.abc import Iterable
from typing import Any

from service.http.problems import KINDS, MEDIA_TYPE, ProblemCode

Responses = dict[int | str, dict[str, Any]]

# What any operation behind the gate may answer.
_GATE = (
    ProblemCode.UNAUTHENTICATED,
    ProblemCode.INSUFFICIENT_SCOPE,
    ProblemCode.TOO_MANY_REQUESTS,
    ProblemCode.INTERNAL,
    ProblemCode.UNAVAILABLE,
)
# What any operation that takes a body may answer besides.
BODY_CODES = (
    ProblemCode.PAYLOAD_TOO_LARGE,
    ProblemCode.UNSUPPORTED_MEDIA_TYPE,
    ProblemCode.STORAGE_FULL,
)

UNCHANGED: Responses = {304: {"description": "Unchanged since the ETag in `If-None-Match`."}}


def problem_responses(*codes: ProblemCode) -> Responses:
    """Return FastAPI's `responses` for these codes and what any with parameters may answer."""
    return _responses((*codes, ProblemCode.VALIDATION_FAILED, *_GATE))


def gate_responses() -> Responses:
    """Return FastAPI's `responses` for an operation that takes no parameters."""
    return _responses(_GATE)


def _responses(codes: Iterable[ProblemCode]) -> Responses:
    """Return an entry for each status, which names all codes that share it."""
    by_status: dict[int | str, list[ProblemCode]] = {}
    for code in codes:
        by_status.setdefault(KINDS[code].status, []).append(code)
    return {
        status: {
            "description": "; ".join(f"`{code}`: {KINDS[code].title}" for code in listed),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status, listed in sorted(by_status.items())
    }
