"""Differences: which networks may be compared, and what speaks against it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.datasets.readers.names import clean_name
from service.datasets.readers.refusals import shorten
from service.datasets.records import DatasetRecord
from service.datasets.schemas import DatasetSummary
from service.jobs.estimated_networks import estimation_spec, network_of, refitted_spec, refused
from service.jobs.planned_data import lock_dataset, planned_data
from service.jobs.plans import Plan
from service.jobs.records import JobRecord
from service.jobs.result_records import ResultRecord
from service.jobs.specs.base import chosen_seed, planned
from service.jobs.specs.difference import PERMUTATIONS_OF_GROUPS, DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec

SAME_TABLE = (
    "Both networks are of the same table. Estimates are compared as those of two tables without a "
    "common row; groups of the rows of one table are compared with `by`."
)
_OTHER = "/other_job_id"
# In one message.
_MOST_NAMED = 10


def plan_difference(session: Session, request: DifferenceSpec) -> Plan:
    """Return the plan; the first data set stays as long as the job does.

    Raises `ProblemError` where a result is not there, or the two cannot be compared: the message
    says what differs. Values of a column of groups are seen when the job runs.
    """
    job = network_of(session, request.job_id, "compared")
    estimation = estimation_spec(job)
    _require_errors(session, job, "/job_id")
    dataset = lock_dataset(session, estimation.dataset_id)
    if request.other_job_id is not None:
        other = network_of(session, request.other_job_id, "compared", _OTHER)
        _require_errors(session, other, _OTHER)
        _refuse_incomparable(session, job, other)
    if request.by is not None:
        request = request.model_copy(update={"by": _column(request.by, dataset, estimation)})
    usual = 0 if request.by is None else PERMUTATIONS_OF_GROUPS
    number = usual if request.n_permutations is None else request.n_permutations
    if number or request.by is not None:
        refitted_spec(job)
        if request.other_job_id is not None:
            refitted_spec(other, _OTHER)
    decided = {"n_permutations": number, "seed": chosen_seed(request.seed)}
    columns = planned(estimation.variables)
    read = columns if request.by is None else [*columns, request.by]
    return Plan(
        spec=request.model_copy(update=decided),
        data=planned_data(dataset, read),
        ground_truth=None,
    )


def _require_errors(session: Session, job: JobRecord, pointer: str) -> None:
    """Raise `ProblemError` unless edges of the network have standard errors."""
    uncertainty = session.scalar(
        select(ResultRecord.document["uncertainty"]).where(ResultRecord.job_id == job.id)
    )
    reason = "it is of an earlier release" if uncertainty is None else uncertainty["reason"]
    if reason is not None:
        raise refused(no_errors(job.id, reason), pointer)


def no_errors(network: str, reason: str) -> str:
    """Return what is said of one that cannot be compared."""
    return f"The network of {network} has no standard errors: {reason}."


@dataclass(frozen=True)
class Scale:
    """What partial correlations are of; only those of the same can be compared."""

    model: str
    # Of debiased estimates: a test may have found a term that the fit does without.
    linear: str
    # By variable.
    transforms: dict[str, str]

    @classmethod
    def of(cls, spec: EstimationSpec, linear: str, transform: str | Sequence[str]) -> Self:
        """Return that of an estimation, of what it chose; `transform` is of all, or of each."""
        names = planned(spec.variables)
        of_each = [transform] * len(names) if isinstance(transform, str) else transform
        return cls(spec.model.kind, linear, dict(zip(names, of_each, strict=True)))

    @classmethod
    def of_job(cls, session: Session, job: JobRecord) -> Self:
        """Return that of an estimation that has a network."""
        document = ResultRecord.document
        transform, chosen, debiased = session.execute(
            select(
                document["transform"],
                document[("linear", "choice")],
                document[("uncertainty", "linear")],
            ).where(ResultRecord.job_id == job.id)
        ).one()
        return cls.of(estimation_spec(job), debiased or chosen, transform)

    def reason_against(self, other: Self) -> str | None:
        """Return why networks of the two cannot be compared; None where they can."""
        if lacking := self.transforms.keys() ^ other.transforms.keys():
            return f"Variables that one of the networks lacks: {_listed(lacking)}."
        if self.model != other.model:
            return f"The models differ: `{self.model}` and `{other.model}`."
        if self.linear != other.linear:
            return (
                f"The linear terms differ: `{self.linear}` and `{other.linear}`; estimate both "
                "with the same `linear`."
            )
        if differing := [n for n, word in self.transforms.items() if word != other.transforms[n]]:
            return (
                f"The transforms differ: `{self.transforms[differing[0]]}` and "
                f"`{other.transforms[differing[0]]}` of {_listed(differing)}; estimate both with "
                "the same `transform`."
            )
        return None


def _refuse_incomparable(session: Session, job: JobRecord, other: JobRecord) -> None:
    same_table = _content(session, job) == _content(session, other)
    scales = Scale.of_job(session, job), Scale.of_job(session, other)
    if reason := SAME_TABLE if same_table else scales[0].reason_against(scales[1]):
        raise refused(reason, _OTHER)


def _content(session: Session, job: JobRecord) -> str:
    """Return what the bytes of an estimation's data set are told by."""
    stored = datasets.find(session, estimation_spec(job).dataset_id)
    assert stored is not None  # it stays as long as a job refers to it
    return stored.original.sha256


def _column(given: str, dataset: DatasetRecord, estimation: EstimationSpec) -> str:
    """Return the column of groups as the data set spells it."""
    name = clean_name(given)
    columns = {c.name: c for c in DatasetSummary.model_validate(dataset.summary).columns}
    if name not in columns:
        raise refused("The data set has no column of this name.", "/by")
    if name in planned(estimation.variables):
        raise refused(
            f"{shorten(name)} is a variable of the network. Estimate the others without it "
            "(`variables`), and compare groups of that network.",
            "/by",
        )
    if columns[name].n_observed == 0 or columns[name].is_constant:
        raise refused(f"{shorten(name)} has fewer than two different values.", "/by")
    return name


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - _MOST_NAMED} more" if len(ordered) > _MOST_NAMED else ""
    return ", ".join(map(shorten, ordered[:_MOST_NAMED])) + more
