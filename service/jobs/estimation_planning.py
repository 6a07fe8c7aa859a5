"""Estimations: every choice made, the data set's facts, the warnings."""

from typing import Any

from sqlalchemy.orm import Session

from service.datasets.records import GroundTruthRecord
from service.datasets.schemas import DatasetSummary
from service.jobs.compatibility import effective_penalty, is_paper, num_parameters, reasons_against
from service.jobs.planned_data import (
    choose_cluster,
    choose_columns,
    gap_warnings,
    lock_dataset,
    planned_data,
    refuse,
    upload_warnings,
)
from service.jobs.plans import Plan, PlannedData
from service.jobs.schemas import EstimationPlan, JobSize, PlanWarning
from service.jobs.specs.base import chosen_seed, planned
from service.jobs.specs.contrastive import PAPER_NOISE_DRAWS, ContrastiveSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.vocabulary import LinearChoice

BYTES_PER_NUMBER = 8
_MCAR = "The result is valid if cells are missing completely at random."
_FILLED = (
    "Missing cells are filled in, or their rows left out, before the fit, which biases it the "
    "more, the more cells are missing."
)
_IMPUTED = (
    "Missing cells are filled in by draws under the estimate, which is valid if they are missing "
    "completely at random, or, if so asked for, by fixed values, which biases the estimate."
)
_MEANING_OF_GAPS = {
    "vnce": _MCAR,
    "nce": _FILLED,
    "mle": _MCAR,
    "contrastive-divergence": _MCAR,
    "pseudo-likelihood": _IMPUTED,
    "score-matching": _IMPUTED,
    "gaussian-score-matching": _MCAR,
    "gaussian-em": "The result is valid if cells are missing at random.",
}


def plan_estimation(session: Session, request: EstimationSpec) -> Plan:
    """Return what `request` would run.

    Raises `ProblemError`: `not-found` without the data set, `incompatible-model` with every
    reason why the model does not fit it.
    """
    dataset = lock_dataset(session, request.dataset_id)
    summary = DatasetSummary.model_validate(dataset.summary)
    spec = resolve(request, summary)
    names = planned(spec.variables)
    return Plan(
        spec=spec,
        data=planned_data(dataset, names),
        ground_truth=_true_edges(session, dataset.id, names),
    )


def resolve(request: EstimationSpec, summary: DatasetSummary) -> EstimationSpec:
    """Return the request with every choice made, for a data set of which `summary` tells.

    Raises `ProblemError` (`incompatible-model`) with every reason why the model does not fit it.
    """
    cluster, reasons = choose_cluster(request.cluster, request.variables, summary.columns)
    others = [column for column in summary.columns if reasons or column.name != cluster]
    columns, unknown = choose_columns(request.variables, others)
    reasons += unknown
    # A misspelt name must not also be reported as too few variables.
    refuse(reasons or reasons_against(request, summary, columns))
    names = [column.name for column in columns]
    seed = chosen_seed(request.seed)
    decided = {"variables": names, "cluster": cluster, "seed": seed, **_decided(request)}
    return request.model_copy(update=decided)


def describe_estimation(spec: EstimationSpec, plan: Plan) -> EstimationPlan:
    """Return what the API says about a planned estimation."""
    data = plan.data
    assert data is not None
    width, rows = len(data.columns), data.summary.n_rows
    estimator = spec.estimator
    noise_ratio = estimator.noise_ratio if isinstance(estimator, ContrastiveSpec) else 0
    num_noise_rows = rows * noise_ratio
    return EstimationPlan(
        dataset_name=data.dataset_name,
        n_missing=sum(column.n_missing for column in data.columns),
        n_censored=sum(column.n_censored + column.n_unknown for column in data.columns),
        has_ground_truth=plan.ground_truth is not None,
        size=JobSize(
            n_rows=rows,
            n_variables=width,
            n_parameters=num_parameters(width),
            n_noise_rows=num_noise_rows,
            noise_bytes=BYTES_PER_NUMBER * num_noise_rows * width,
        ),
    )


def warnings_about(spec: EstimationSpec, data: PlannedData) -> list[PlanWarning]:
    """Return what to know about the data before the estimation runs."""
    return [*upload_warnings(data), *gap_warnings(data, _MEANING_OF_GAPS[spec.estimator.kind])]


def _decided(request: EstimationSpec) -> dict[str, Any]:
    """Return the parts of a request that other parts of it decide."""
    parts: dict[str, Any] = {}
    estimator, model = request.estimator, request.model
    follows_paper = is_paper(estimator)
    if isinstance(estimator, ContrastiveSpec):
        recipe: dict[str, Any] = {"penalty": effective_penalty(estimator)}
        if follows_paper:
            recipe["noise_draws"] = PAPER_NOISE_DRAWS
        parts["estimator"] = estimator.model_copy(update=recipe)
    if model.linear is LinearChoice.AUTO and follows_paper:
        parts["model"] = model.model_copy(update={"linear": LinearChoice.ZERO})
    return parts


def _true_edges(session: Session, dataset_id: str, names: list[str]) -> list[list[str]] | None:
    truth = session.get(GroundTruthRecord, dataset_id)
    if truth is None:
        return None
    chosen = set(names)
    return [edge for edge in truth.edges if chosen.issuperset(edge)]
