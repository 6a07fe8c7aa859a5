"""Estimations of the mixture: one column with enough values, every choice made, the warnings."""

from collections.abc import Iterator

from sqlalchemy.orm import Session

from service.datasets.schemas import ColumnSummary, DatasetSummary
from service.datasets.vocabulary import WarningCode
from service.http.problems import ProblemItem
from service.jobs.compatibility import refused_limits
from service.jobs.planned_data import (
    choose_columns,
    gap_warnings,
    lock_dataset,
    planned_data,
    refuse,
    upload_warnings,
)
from service.jobs.plans import Plan, PlannedData
from service.jobs.schemas import EstimationPlan, JobSize, PlanWarning
from service.jobs.specs.base import MIN_ROWS, chosen_seed, planned
from service.jobs.specs.mixture import (
    MixtureEstimationSpec,
    MixtureMleEstimatorSpec,
)
from service.jobs.vocabulary import MixtureForm

BYTES_PER_NUMBER = 8
_GAPS = (
    "Rows without a value say nothing in a table of one column and are left out. The result is "
    "valid if cells are missing completely at random."
)
# What is odd in a table for a network and meant here, or said of the rows left out.
NO_CONCERN = {WarningCode.SINGLE_COLUMN, WarningCode.NEGATIVE_VALUES, WarningCode.EMPTY_ROWS}


def plan_mixture(session: Session, request: MixtureEstimationSpec) -> Plan:
    """Return what `request` would run.

    Raises `ProblemError`: `not-found` without the data set, `incompatible-model` with every
    reason why the mixture does not fit it.
    """
    dataset = lock_dataset(session, request.dataset_id)
    summary = DatasetSummary.model_validate(dataset.summary)
    spec = resolve_mixture(request, summary)
    names = planned(spec.variables)
    return Plan(
        spec=spec,
        data=planned_data(dataset, names),
        ground_truth=None,  # one column makes no graph
    )


def resolve_mixture(
    request: MixtureEstimationSpec, summary: DatasetSummary
) -> MixtureEstimationSpec:
    """Return the request with every choice made, for a data set of which `summary` tells.

    Raises `ProblemError` (`incompatible-model`) with every reason why the mixture does not fit it.
    """
    columns, reasons = choose_columns(request.variables, summary.columns)
    refuse(reasons or list(_reasons_against(request, columns)))
    seed = chosen_seed(request.seed)
    names = [column.name for column in columns]
    return request.model_copy(update={"variables": names, "seed": seed})


def describe_mixture(spec: MixtureEstimationSpec, data: PlannedData) -> EstimationPlan:
    """Return what the API says about a planned estimation of the mixture."""
    [column] = data.columns
    estimator = spec.estimator
    noise_ratio = 0 if isinstance(estimator, MixtureMleEstimatorSpec) else estimator.noise_ratio
    num_noise_rows = column.n_observed * noise_ratio
    # Without noise, under maximum likelihood, c follows from theta.
    has_constant = noise_ratio > 0 and spec.model.form is MixtureForm.UNNORMALISED
    return EstimationPlan(
        dataset_name=data.dataset_name,
        n_missing=column.n_missing,
        n_censored=column.n_censored + column.n_unknown,
        has_ground_truth=False,
        size=JobSize(
            n_rows=data.summary.n_rows,
            n_variables=1,
            n_parameters=2 if has_constant else 1,
            n_noise_rows=num_noise_rows,
            noise_bytes=BYTES_PER_NUMBER * num_noise_rows,
        ),
    )


def mixture_warnings(data: PlannedData) -> list[PlanWarning]:
    """Return what to know about the column before the estimation runs."""
    found = upload_warnings(data)
    kept = [warning for warning in found if warning.code not in NO_CONCERN]
    return [*kept, *gap_warnings(data, _GAPS)]


def _reasons_against(
    request: MixtureEstimationSpec, columns: list[ColumnSummary]
) -> Iterator[ProblemItem]:
    if len(columns) != 1:
        yield ProblemItem(
            message=f'Model "mixture" describes one column, got {len(columns)}: name the one to '
            "use in `variables`.",
            pointer="/variables",
            count=len(columns),
        )
        return
    [column] = columns
    if column.n_observed < MIN_ROWS:
        yield ProblemItem(
            message=f"At least {MIN_ROWS} values are needed, got {column.n_observed}.",
            column=column.name,
            count=column.n_observed,
        )
    elif column.is_constant:
        yield ProblemItem(message="All observed values are the same.", column=column.name)
    is_likelihood = isinstance(request.estimator, MixtureMleEstimatorSpec)
    if is_likelihood and request.model.form is MixtureForm.NORMALISED and column.n_zeros > 0:
        yield ProblemItem(
            message="At exact zeros the likelihood of the normalised mixture grows without bound "
            'as theta shrinks: use estimator "vnce" or "nce", or form "unnormalised".',
            column=column.name,
            pointer="/estimator/kind",
            count=column.n_zeros,
        )
    yield from refused_limits(request.censored, column)
