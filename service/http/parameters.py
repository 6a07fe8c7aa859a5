"""What no operation takes: parameters that it does not have, and texts that no database holds."""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Cookie, Header, Path
from fastapi.routing import APIRoute

from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.http.words import counted

NUL = "\0"


async def refuse_nul(request: Request) -> None:
    """Raise `ProblemError` where the path or a query parameter holds a NUL character.

    PostgreSQL has no text with one, and so nothing of such a name.
    """
    if any(NUL in value for value in request.path_params.values()):
        raise ProblemError(ProblemCode.NOT_FOUND, "Nothing has a name with a NUL character.")
    found = [name for name, value in request.query_params.multi_items() if NUL in name + value]
    if found:
        raise ProblemError(
            ProblemCode.VALIDATION_FAILED,
            "A query parameter holds a NUL character.",
            errors=[ProblemItem(message="No text here holds NUL.", parameter=n) for n in found],
        )


async def refuse_unknown_parameters(request: Request) -> None:
    """Raise `ProblemError` that names each query parameter which the operation does not declare."""
    if not request.query_params:
        return
    known = _query_parameters(request.scope["route"])
    unknown = sorted(set(request.query_params).difference(known))
    if not unknown:
        return
    allowed = ", ".join(known) or "none"
    raise ProblemError(
        ProblemCode.VALIDATION_FAILED,
        f"{counted(len(unknown), 'query parameter is', 'query parameters are')} unknown; this "
        f"operation has: {allowed}.",
        errors=[ProblemItem(message="There is no such parameter.", parameter=n) for n in unknown],
    )


def _query_parameters(route: APIRoute) -> tuple[str, ...]:
    """Return the names of the query parameters that a route and its dependencies declare."""
    # The fields of a model of query parameters are plain ones.
    fields = get_flat_params(route.dependant)
    return tuple(f.alias for f in fields if not isinstance(f.field_info, Path | Header | Cookie))
