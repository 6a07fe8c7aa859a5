"""How operations declare their answers, errors among them."""

from typing import Any

from service.http.problems import KINDS, MEDIA_TYPE, ProblemCode

Responses = dict[int | str, dict[str, Any]]

# What any operation may answer besides what it declares.
_OF_ALL = (
    ProblemCode.VALIDATION_FAILED,
    ProblemCode.UNAUTHENTICATED,
    ProblemCode.INSUFFICIENT_SCOPE,
    ProblemCode.TOO_MANY_REQUESTS,
    ProblemCode.INTERNAL,
    ProblemCode.UNAVAILABLE,
    # Where something is stored.
    ProblemCode.STORAGE_FULL,
)
# What any operation that takes a body may answer besides.
BODY_CODES = (ProblemCode.PAYLOAD_TOO_LARGE, ProblemCode.UNSUPPORTED_MEDIA_TYPE)
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}

# Of every operation: the problems that it does not name.
ANY_PROBLEM: Responses = {
    "default": {
        "description": "Any other problem; of all operations "
        + ", ".join(f"`{code}` ({KINDS[code].status})" for code in _OF_ALL)
        + ".",
        "content": _PROBLEM,
    }
}


def problem_responses(*codes: ProblemCode) -> Responses:
    """Return FastAPI's `responses` for these codes: an entry a status, which names its codes."""
    by_status: dict[int | str, list[ProblemCode]] = {KINDS[code].status: [] for code in codes}
    for code in dict.fromkeys((*codes, *_OF_ALL)):
        if (status := KINDS[code].status) in by_status:
            by_status[status].append(code)
    return {
        status: {
            "description": "; ".join(f"`{code}`: {KINDS[code].title}" for code in listed),
            "content": _PROBLEM,
        }
        for status, listed in sorted(by_status.items())
    }


def header(description: str) -> dict[str, Any]:
    """Return the declaration of an answer's header."""
    return {"description": description, "schema": {"type": "string"}}
