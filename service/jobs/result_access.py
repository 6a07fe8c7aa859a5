"""Who may read a result: a job that has succeeded and whose result is still kept."""

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from service.http.problems import Problem, ProblemCode, ProblemError
from service.jobs import lifecycle
from service.jobs.records import JobRecord, JobState
from service.jobs.result_records import ResultRecord

# What any endpoint below /result may answer.
NO_RESULT = (
    ProblemCode.NOT_FOUND,
    ProblemCode.JOB_NOT_FINISHED,
    ProblemCode.JOB_FAILED,
    ProblemCode.JOB_CANCELLED,
    ProblemCode.RESULT_EXPIRED,
)


def result_of(session: Session, job_id: str) -> tuple[JobRecord, ResultRecord]:
    """Return the job and its result; raises `ProblemError` that says why there is none.

    The document, which may hold megabytes, is only read where the session's owner asks for it.
    """
    job = lifecycle.existing(session, job_id)
    match JobState(job.state):
        case JobState.QUEUED | JobState.RUNNING:
            raise ProblemError(
                ProblemCode.JOB_NOT_FINISHED,
                f"The job is {job.state}; poll /v1/jobs/{job_id} until it is in a final state.",
                headers={"Retry-After": "1"},
            )
        case JobState.FAILED:
            reason = Problem.model_validate(job.error)
            raise ProblemError(
                ProblemCode.JOB_FAILED,
                f"The job failed with `{reason.code}`: {reason.detail}",
                errors=reason.errors,
            )
        case JobState.CANCELLED:
            raise ProblemError(
                ProblemCode.JOB_CANCELLED, "The job was cancelled; submit it again if it is wanted."
            )
        case JobState.SUCCEEDED:
            pass
    result = session.get(ResultRecord, job_id, options=[defer(ResultRecord.document)])
    if result is None:
        raise ProblemError(
            ProblemCode.RESULT_EXPIRED,
            "The result's retention period has expired and it was deleted; the job's `spec`, seed "
            "included, still says how to make it again.",
        )
    return job, result


def estimation_of(session: Session, job_id: str) -> tuple[JobRecord, ResultRecord]:
    """Return the job and its result, which is a network; raises `ProblemError` if not."""
    job, result = result_of(session, job_id)
    if (kind := kind_of(session, job)) != "estimation":
        raise ProblemError(ProblemCode.NOT_FOUND, f"A result of kind `{kind}` has no graph.")
    return job, result


def kind_of(session: Session, job: JobRecord) -> str:
    """Return the kind of a job's result; an estimation's may be a network or a mixture."""
    kind = ResultRecord.document["kind"].as_string()
    named = session.scalar(select(kind).where(ResultRecord.job_id == job.id))
    return named or job.kind  # the first release's do not name it


def require_truth(job: JobRecord) -> None:
    """Raise `ProblemError` if the job's data set had no true graph when it was submitted."""
    if job.ground_truth is None:
        raise ProblemError(
            ProblemCode.GROUND_TRUTH_MISSING,
            "There was no ground truth when the job was submitted. PUT one at "
            f"/v1/datasets/{job.dataset_id}/ground-truth and submit the job again.",
        )
