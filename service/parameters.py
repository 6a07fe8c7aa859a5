"""Refusing query parameters that an operation does not have: a mistyped filter filters nothing."""

from fastapi import Request

from service.problems import ProblemCode, ProblemError, ProblemItem


async def refuse_unknown_parameters(request: Request) -> None:
    """Raise `ProblemError` that names each query parameter which the operation does not declare.

    What it declares is read from the app's own OpenAPI document.
    """
    path = getattr(request.scope["route"], "path_format", "")
    operation = request.app.openapi()["paths"].get(path, {}).get(request.method.lower(), {})
    known = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query"]
    unknown = sorted(set(request.query_params) - set(known))
    if not unknown:
        return
    allowed = ", ".join(known) or "none"
    raise ProblemError(
        ProblemCode.VALIDATION_FAILED,
        f"{len(unknown)} query parameter(s) mean nothing here; this operation has: {allowed}.",
        errors=[ProblemItem(message="There is no such parameter.", parameter=n) for n in unknown],
    )
