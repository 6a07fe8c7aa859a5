"""Bodies come as they are: a compressed one could unfold to any size."""

from fastapi import Request

from service.problems import ProblemCode, ProblemError


def refuse_content_coding(request: Request) -> None:
    """Raise `ProblemError`, 415, for a request whose body is encoded."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ProblemError(
            ProblemCode.UNSUPPORTED_MEDIA_TYPE, "Send the body as it is, without Content-Encoding."
        )
