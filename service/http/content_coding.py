"""Bodies come as they are: a compressed one could unfold to any size."""

from fastapi import Request

from service.http.problems import ProblemCode, ProblemError


def refuse_content_coding(request: Request) -> None:
    """Raise `ProblemError`, 415, for a request whose body is encoded."""
    named = request.headers.getlist("content-encoding")
    if any(coding.strip().lower() != "identity" for coding in named):
        raise ProblemError(
            ProblemCode.UNSUPPORTED_MEDIA_TYPE, "Send the body as it is, without Content-Encoding."
        )
