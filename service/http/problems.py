"""Errors over HTTP: RFC 9457 problem documents, one shape everywhere.

The same document answers a request and is stored as the `error` of a failed job.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import BaseModel, Field

MEDIA_TYPE: Final = "application/problem+json"


class Kind(NamedTuple):
    """What every problem of one code has in common."""

    status: int
    title: str


class ProblemCode(StrEnum):
    """Stable names of everything that can go wrong."""

    INVALID_REQUEST = "invalid-request"
    UNAUTHENTICATED = "unauthenticated"
    INSUFFICIENT_SCOPE = "insufficient-scope"
    FOREIGN_ORIGIN = "foreign-origin"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    DATASET_IN_USE = "dataset-in-use"
    GROUND_TRUTH_MISSING = "ground-truth-missing"
    JOB_NOT_FINISHED = "job-not-finished"
    JOB_FAILED = "job-failed"
    JOB_CANCELLED = "job-cancelled"
    JOB_NOT_TERMINAL = "job-not-terminal"
    JOB_IS_A_PART = "job-is-a-part"
    RESULT_EXPIRED = "result-expired"
    PAYLOAD_TOO_LARGE = "payload-too-large"
    QUOTA_REACHED = "quota-reached"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    VALIDATION_FAILED = "validation-failed"
    UNREADABLE_DATASET = "unreadable-dataset"
    INCOMPATIBLE_MODEL = "incompatible-model"
    IDEMPOTENCY_KEY_REUSED = "idempotency-key-reused"
    TOO_MANY_REQUESTS = "too-many-requests"
    TOO_MANY_JOBS = "too-many-jobs"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"
    STORAGE_FULL = "storage-full"
    # Ends of a job, stored in its record and never the answer to a request.
    WORKER_LOST = "worker-lost"
    PARTS_FAILED = "parts-failed"
    NON_FINITE_OBJECTIVE = "non-finite-objective"
    TIME_LIMIT = "time-limit"
    OUT_OF_MEMORY = "out-of-memory"


KINDS: Final[dict[ProblemCode, Kind]] = {
    ProblemCode.INVALID_REQUEST: Kind(400, "The request cannot be read"),
    ProblemCode.UNAUTHENTICATED: Kind(401, "Authentication is required"),
    ProblemCode.INSUFFICIENT_SCOPE: Kind(403, "The API key lacks the scope for this"),
    ProblemCode.FOREIGN_ORIGIN: Kind(403, "The origin is not allowed"),
    ProblemCode.NOT_FOUND: Kind(404, "Not found"),
    ProblemCode.METHOD_NOT_ALLOWED: Kind(405, "The method is not allowed here"),
    ProblemCode.DATASET_IN_USE: Kind(409, "Jobs still need this data set"),
    ProblemCode.GROUND_TRUTH_MISSING: Kind(409, "The job had no ground truth to be scored against"),
    ProblemCode.JOB_NOT_FINISHED: Kind(409, "The job has not finished"),
    ProblemCode.JOB_FAILED: Kind(409, "The job failed and has no result"),
    ProblemCode.JOB_CANCELLED: Kind(409, "The job was cancelled and has no result"),
    ProblemCode.JOB_NOT_TERMINAL: Kind(409, "The job is not in a final state"),
    ProblemCode.JOB_IS_A_PART: Kind(409, "The job is a part of another"),
    ProblemCode.RESULT_EXPIRED: Kind(410, "The result has expired"),
    ProblemCode.PAYLOAD_TOO_LARGE: Kind(413, "The request is larger than allowed"),
    ProblemCode.QUOTA_REACHED: Kind(413, "The storage quota is reached"),
    ProblemCode.UNSUPPORTED_MEDIA_TYPE: Kind(415, "This kind of content is not accepted"),
    ProblemCode.VALIDATION_FAILED: Kind(422, "The request does not fit its schema"),
    ProblemCode.UNREADABLE_DATASET: Kind(422, "The data set cannot be read without guessing"),
    ProblemCode.INCOMPATIBLE_MODEL: Kind(422, "The model does not fit this data set"),
    ProblemCode.IDEMPOTENCY_KEY_REUSED: Kind(422, "The idempotency key was used for another body"),
    ProblemCode.TOO_MANY_REQUESTS: Kind(429, "Too many requests"),
    ProblemCode.TOO_MANY_JOBS: Kind(429, "Too many jobs wait or run"),
    ProblemCode.INTERNAL: Kind(500, "Internal error"),
    ProblemCode.UNAVAILABLE: Kind(503, "The service is unavailable"),
    ProblemCode.STORAGE_FULL: Kind(507, "Insufficient storage"),
    ProblemCode.WORKER_LOST: Kind(500, "The worker process was lost"),
    ProblemCode.PARTS_FAILED: Kind(500, "Every part of the job failed"),
    ProblemCode.NON_FINITE_OBJECTIVE: Kind(500, "The objective became infinite or undefined"),
    ProblemCode.TIME_LIMIT: Kind(500, "The job ran past its time limit"),
    ProblemCode.OUT_OF_MEMORY: Kind(500, "The job needed more memory than allowed"),
}


class ProblemItem(BaseModel):
    """One place where something is wrong."""

    message: str = Field(description="What is wrong there and what would be right.")
    pointer: str | None = Field(
        default=None, description="JSON pointer into the request body, such as /model/transform."
    )
    parameter: str | None = Field(default=None, description="Name of the query or path parameter.")
    column: str | None = Field(default=None, description="Name of the data set's column.")
    row: int | None = Field(
        default=None, ge=1, description="Row of the data set, from 1, the header not counted."
    )
    line: int | None = Field(default=None, ge=1, description="Line of the uploaded file, from 1.")
    cell: str | None = Field(default=None, description="The cell's own text, cut at 80 characters.")
    count: int | None = Field(default=None, ge=1, description="How many cells are affected.")


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    type: str = Field(description="urn:vnce:problem:<code>")
    title: str = Field(description="What all problems of this code have in common.")
    status: int = Field(description="HTTP status.", ge=400, le=599)
    detail: str = Field(description="What happened this time and what to do.")
    instance: str | None = Field(description="Path of the request or of the job.")
    code: ProblemCode = Field(description="Stable, machine-readable name of the problem.")
    request_id: str | None = Field(description="The answer's X-Request-ID, for the logs.")
    errors: list[ProblemItem] = Field(description="The places concerned; may be empty.")


class ProblemError(Exception):
    """Raised anywhere below an endpoint to answer with a problem document."""

    def __init__(
        self,
        code: ProblemCode,
        detail: str,
        *,
        errors: list[ProblemItem] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = errors or []
        self.headers = headers or {}

    @property
    def status(self) -> int:
        """The HTTP status that belongs to the code."""
        return KINDS[self.code].status


def problem_document(
    code: ProblemCode,
    detail: str,
    *,
    errors: list[ProblemItem] | None = None,
    instance: str | None = None,
    request_id: str | None = None,
) -> Problem:
    """Return the document of one problem."""
    kind = KINDS[code]
    return Problem(
        type=f"urn:vnce:problem:{code}",
        title=kind.title,
        status=kind.status,
        detail=detail,
        instance=instance,
        code=code,
        request_id=request_id,
        errors=errors or [],
    )
