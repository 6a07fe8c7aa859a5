"""Estimations that have succeeded, as what other jobs are about."""

from sqlalchemy.orm import Session

from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.jobs import result_access as access
from service.jobs.records import JobRecord
from service.jobs.specs import spec_of
from service.jobs.specs.contrastive import ContrastiveSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.vocabulary import Selection


def network_of(session: Session, job_id: str, use: str, pointer: str = "/job_id") -> JobRecord:
    """Return an estimation that has a network; raise `ProblemError` that says why it has none."""
    try:
        job, _ = access.result_of(session, job_id)
    except ProblemError as missing:
        missing.errors = [ProblemItem(message=missing.detail, pointer=pointer)]
        raise
    if (kind := access.kind_of(session, job)) != "estimation":
        message = f"The result of {job.id} is of kind `{kind}`; only a network can be {use}."
        raise refused(message, pointer)
    return job


def estimation_spec(job: JobRecord) -> EstimationSpec:
    """Return the specification of an estimation that has a network."""
    spec = spec_of(job.spec)
    assert isinstance(spec, EstimationSpec)
    return spec


def refitted_spec(job: JobRecord, pointer: str = "/job_id") -> EstimationSpec:
    """Return that of one that is to be fitted again by the same choices.

    Raises `ProblemError` where half-samples have chosen the graph.
    """
    spec = estimation_spec(job)
    if is_by_half_samples(spec):
        message = (
            f"The graph of {job.id} was chosen by half-samples, and its result says how stable it "
            "is: `inclusion` of each pair."
        )
        raise refused(message, pointer)
    return spec


def is_by_half_samples(spec: EstimationSpec) -> bool:
    """Return whether half-samples choose the graph, which no fit to other rows can then hold."""
    estimator = spec.estimator
    return isinstance(estimator, ContrastiveSpec) and estimator.selection is Selection.STABILITY


def refused(message: str, pointer: str) -> ProblemError:
    """Return the refusal of what a field names."""
    return ProblemError(
        ProblemCode.INCOMPATIBLE_MODEL,
        message,
        errors=[ProblemItem(message=message, pointer=pointer)],
    )
