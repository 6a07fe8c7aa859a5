"""Submission, polling, cancelling and deleting of jobs."""

import logging
from typing import Annotated

from fastapi import APIRouter, Body, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from service.http import pagination as paging
from service.http.dependencies import DatabaseDep, IdentityDep, SettingsDep
from service.http.etag import json_response
from service.http.json_route import JsonRoute
from service.http.openapi_responses import BODY_CODES, Responses, header, problem_responses
from service.http.pagination import CursorQuery, LimitQuery
from service.http.problems import ProblemCode
from service.http.request_model import LABEL_PATTERN
from service.http.root_path import address_of
from service.jobs import events, lifecycle, planning, repository, submission, watch
from service.jobs.records import JobState
from service.jobs.repository import JobFilter
from service.jobs.result_access import NO_RESULT
from service.jobs.schemas import JobPage, JobPlan, JobRead
from service.jobs.specs import JobCreate
from service.jobs.submission import SubmissionLimits, Submitter
from service.jobs.vocabulary import JobKind

logger = logging.getLogger("service")

# Why a request may not be met; those of `NO_RESULT` concern the estimation that is to be scored.
_REFUSALS = (
    *NO_RESULT,
    ProblemCode.GROUND_TRUTH_MISSING,
    ProblemCode.INCOMPATIBLE_MODEL,
)
# How long a client should wait before it looks again, in seconds.
RETRY_AFTER = {"Retry-After": "1"}

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=JsonRoute)
# Named apart: a colon follows the noun, as in `POST /v1/jobs:validate`.
validation_router = APIRouter(tags=["jobs"], route_class=JsonRoute)

_STREAM: Responses = {
    200: {
        "description": "An event `job` with the job's document at each change, until it is in a "
        "final state.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "The job is in a final state and you have seen it."},
}
_WAS_FINAL: Responses = {200: {"model": JobRead, "description": "It was in a final state already."}}

JobBody = Annotated[
    JobCreate,
    Body(
        openapi_examples={
            "estimation": {
                "summary": "The network of a data set, cube roots of its columns taken.",
                "value": {
                    "kind": "estimation",
                    "dataset_id": "dataset_6141645bcbf443d6b95973d5a71edf2f",
                    "model": {"kind": "truncated-gaussian", "transform": "cbrt"},
                    "estimator": {"kind": "vnce"},
                },
            },
            "simulation": {
                "summary": "A data set of known network with a third of its cells missing.",
                "value": {"kind": "simulation", "graph": "ring", "missing_fraction": 0.33},
            },
        }
    ),
]
JobId = Annotated[str, Path(description="Identifier of the job.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="A name that you make up for this submission, 1 to 255 visible ASCII "
        "characters: sent again, it finds the same job instead of making another.",
    ),
]
LastEventId = Annotated[
    str | None, Header(max_length=64, description="Id of the last event that you had.")
]


_ACCEPTED_HEADERS = {
    "Location": header("Address of the job."),
    "Retry-After": header("Seconds to wait before looking at it."),
}
_ACCEPTED: Responses = {
    200: {
        "model": JobRead,
        "description": "The job that this Idempotency-Key has made before.",
        "headers": _ACCEPTED_HEADERS,
    },
    202: {"headers": _ACCEPTED_HEADERS},
}


@router.post(
    "",
    operation_id="create_job",
    status_code=202,
    response_description="Accepted; follow it at its address.",
    responses=_ACCEPTED
    | problem_responses(
        *_REFUSALS,
        ProblemCode.IDEMPOTENCY_KEY_REUSED,
        ProblemCode.TOO_MANY_JOBS,
        *BODY_CODES,
        ProblemCode.QUOTA_REACHED,
    ),
)
def create_job(
    body: JobBody,
    request: Request,
    response: Response,
    database: DatabaseDep,
    settings: SettingsDep,
    identity: IdentityDep,
    idempotency_key: IdempotencyKey = None,
) -> JobRead:
    """Accept a job; it is queued and runs as soon as a worker is free."""
    submitter = Submitter(identity.key_id, request.state.request_id)
    limits = SubmissionLimits.from_settings(settings)
    job, is_new = submission.accept(database, body, limits, submitter, idempotency_key)
    logger.info("job %s: %s", job.id, "accepted" if is_new else "found by its Idempotency-Key")
    response.headers["Location"] = address_of(f"/v1/jobs/{job.id}")
    if not is_new:
        response.status_code = 200
    if not JobState(job.state).is_terminal:
        response.headers.update(RETRY_AFTER)
    with database.snapshot() as session:
        # One that an Idempotency-Key has found may have been split meanwhile.
        [described] = lifecycle.described(session, [job])
    return described


@validation_router.post(
    "/v1/jobs:validate",
    operation_id="validate_job",
    responses=problem_responses(*_REFUSALS, *BODY_CODES),
)
def validate_job(body: JobBody, database: DatabaseDep) -> JobPlan:
    """Say what a request would run; store nothing."""
    with database.snapshot() as session:
        return planning.describe(planning.plan(session, body))


@router.get("", operation_id="list_jobs")
def list_jobs(
    database: DatabaseDep,
    state: Annotated[JobState | None, Query(description="Only jobs in this state.")] = None,
    kind: Annotated[
        JobKind | None,
        Query(
            description="Only jobs of this kind; one such as `bootstrap-part` without `parent_id`: "
            "the parts of all jobs."
        ),
    ] = None,
    dataset_id: Annotated[
        str | None,
        Query(pattern="^[A-Za-z0-9_]{1,40}$", description="Only jobs that read this data set."),
    ] = None,
    tag: Annotated[
        str | None,
        Query(
            max_length=200, pattern=LABEL_PATTERN, description="Only jobs with exactly this tag."
        ),
    ] = None,
    parent_id: Annotated[
        str | None,
        Query(
            pattern="^[A-Za-z0-9_]{1,40}$",
            description="Only parts of this job; left out: only jobs that are part of no other, "
            "or whatever `kind` says.",
        ),
    ] = None,
    limit: LimitQuery = 50,
    cursor: CursorQuery = None,
) -> JobPage:
    """List jobs, newest first."""
    wanted = JobFilter(state=state, kind=kind, dataset_id=dataset_id, tag=tag, parent_id=parent_id)
    with database.snapshot() as session:
        # One more than asked for tells whether there is a next page.
        found = repository.newest(session, wanted, limit + 1, paging.place_of(cursor))
        page = found[:limit]
        items = lifecycle.described(session, page)
    is_last = len(found) <= limit
    return JobPage(
        items=items,
        next_cursor=None if is_last else paging.cursor_at(page[-1].created_at, page[-1].id),
    )


@router.get(
    "/{job_id}",
    operation_id="get_job",
    response_model=JobRead,
    responses=problem_responses(ProblemCode.NOT_FOUND),
)
def get_job(job_id: JobId, request: Request, database: DatabaseDep) -> Response:
    """Show a job, whatever its state; Retry-After says when to look again."""
    with database.snapshot() as session:
        job = lifecycle.read(session, job_id)
    headers = {} if job.state.is_terminal else RETRY_AFTER
    return json_response(request, job, {**headers, "Cache-Control": "no-cache"})


@router.get(
    "/{job_id}/events",
    operation_id="follow_job",
    response_class=StreamingResponse,
    responses=_STREAM | problem_responses(ProblemCode.NOT_FOUND),
)
def follow_job(
    job_id: JobId,
    database: DatabaseDep,
    identity: IdentityDep,
    last_event_id: LastEventId = None,
) -> Response:
    """Stream a job's changes as server-sent events."""
    with database.snapshot() as session:
        job = lifecycle.read(session, job_id)
    if job.state.is_terminal and watch.event_id(job) == last_event_id:
        return Response(status_code=204)  # tells an EventSource not to come back
    return StreamingResponse(
        events.follow(database, job_id, last_event_id, identity.key_id),
        media_type="text/event-stream",
        # Proxies would hold small events back.
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


@router.put(
    "/{job_id}/cancellation",
    operation_id="cancel_job",
    status_code=202,
    response_description="It is cancelled, or will stop within seconds.",
    responses=_WAS_FINAL | problem_responses(ProblemCode.NOT_FOUND),
)
def cancel_job(job_id: JobId, response: Response, database: DatabaseDep) -> JobRead:
    """Cancel a job: at once if it waits, within seconds if it runs."""
    with database.transaction() as session:
        job, changed = lifecycle.request_cancellation(session, job_id)
    if not changed:
        response.status_code = 200
    if not job.state.is_terminal:
        response.headers.update(RETRY_AFTER)
    return job


@router.delete(
    "/{job_id}",
    operation_id="delete_job",
    status_code=204,
    response_class=Response,
    responses=problem_responses(
        ProblemCode.NOT_FOUND, ProblemCode.JOB_NOT_TERMINAL, ProblemCode.JOB_IS_A_PART
    ),
)
def delete_job(job_id: JobId, database: DatabaseDep) -> None:
    """Delete a job in a final state and everything that it has left."""
    with database.transaction() as session:
        lifecycle.remove(session, job_id)
