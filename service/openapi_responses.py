"""How operations declare their errors, so that the specification lists every one of them."""

from typing import Any

from service.problems import KINDS, MEDIA_TYPE, ProblemCode

Responses = dict[int | str, dict[str, Any]]

# What any operation behind the gate that reads parameters and the database may answer.
_COMMON = (
    ProblemCode.UNAUTHENTICATED,
    ProblemCode.INSUFFICIENT_SCOPE,
    ProblemCode.VALIDATION_FAILED,
    ProblemCode.TOO_MANY_REQUESTS,
    ProblemCode.INTERNAL,
    ProblemCode.UNAVAILABLE,
)
# What any operation that takes a body may answer besides.
BODY_CODES = (
    ProblemCode.REQUEST_TIMEOUT,
    ProblemCode.PAYLOAD_TOO_LARGE,
    ProblemCode.QUOTA_REACHED,
    ProblemCode.UNSUPPORTED_MEDIA_TYPE,
    ProblemCode.STORAGE_FULL,
)


UNCHANGED: Responses = {304: {"description": "Unchanged since the ETag in `If-None-Match`."}}


def problem_responses(*codes: ProblemCode) -> Responses:
    """Return FastAPI's `responses` for problems with these codes and the common ones.

    Codes that share a status share an entry, which names them all.
    """
    by_status: dict[int | str, list[ProblemCode]] = {}
    for code in (*codes, *_COMMON):
        by_status.setdefault(KINDS[code].status, []).append(code)
    return {
        status: {
            "description": "; ".join(f"`{code}`: {KINDS[code].title}" for code in listed),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status, listed in sorted(by_status.items())
    }
