"""Comparisons: every specification planned as an estimation of its own would be."""

from sqlalchemy.orm import Session

from service.datasets.schemas import DatasetSummary
from service.http.problems import ProblemError, ProblemItem
from service.jobs.estimation_planning import resolve, warnings_about
from service.jobs.planned_data import lock_dataset, planned_data, refuse
from service.jobs.plans import Plan, PlannedData
from service.jobs.schemas import PlanWarning
from service.jobs.specs.base import chosen_seed, planned
from service.jobs.specs.comparison import ComparisonSpec, Specification
from service.jobs.specs.estimation import EstimationSpec

# Leaves a number room within the 200 characters of a name.
_LONGEST_MADE = 190


def plan_comparison(session: Session, request: ComparisonSpec) -> Plan:
    """Return what `request` would run; raises `ProblemError` as `plan_estimation` does."""
    dataset = lock_dataset(session, request.dataset_id)
    spec = resolve_comparison(request, DatasetSummary.model_validate(dataset.summary))
    data = planned_data(dataset, planned(spec.variables))
    return Plan(spec=spec, data=data, ground_truth=None)


def resolve_comparison(request: ComparisonSpec, summary: DatasetSummary) -> ComparisonSpec:
    """Return the request with every choice made, for a data set of which `summary` tells.

    Raises `ProblemError` (`incompatible-model`) with every reason why a specification does not fit
    it, and where that stands.
    """
    request = request.model_copy(update={"seed": chosen_seed(request.seed)})
    resolved: list[EstimationSpec] = []
    reasons: list[list[ProblemItem]] = []
    for position in range(len(request.specifications)):
        try:
            resolved.append(resolve(request.estimation(position), summary))
        except ProblemError as refusal:
            reasons.append(refusal.errors)
        else:
            reasons.append([])
    refuse(_placed(reasons) + _of_the_folds(request.n_folds, summary))
    names = _names(request.specifications)
    specifications = [
        one.model_copy(update={"name": name, "model": fit.model, "estimator": fit.estimator})
        for one, name, fit in zip(request.specifications, names, resolved, strict=True)
    ]
    shared = {"variables": resolved[0].variables, "cluster": resolved[0].cluster}
    decided = {**shared, "specifications": specifications}
    return request.model_copy(update=decided)


def comparison_warnings(spec: ComparisonSpec, data: PlannedData) -> list[PlanWarning]:
    """Return what to know about the data before the fits; what concerns several is told once."""
    of_each = [
        warning
        for position in range(len(spec.specifications))
        for warning in warnings_about(spec.estimation(position), data)
    ]
    return list({warning.model_dump_json(): warning for warning in of_each}.values())


def _of_the_folds(n_folds: int, summary: DatasetSummary) -> list[ProblemItem]:
    rows = summary.n_rows - summary.n_empty_rows
    if n_folds <= rows:
        return []
    message = f"There are {rows} rows with something observed: ask for as many folds at most."
    return [ProblemItem(message=message, pointer="/n_folds")]


def _placed(reasons: list[list[ProblemItem]]) -> list[ProblemItem]:
    """Return the reasons against each specification, with its place unless all have the same."""
    shared = [item for item in reasons[0] if all(item in others for others in reasons)]
    return shared + [
        item.model_copy(update={"pointer": f"/specifications/{position}{item.pointer or ''}"})
        for position, items in enumerate(reasons)
        for item in items
        if item not in shared
    ]


def _names(specifications: list[Specification]) -> list[str]:
    """Return a name for each; raise `ProblemError` naming those that two have been given."""
    given = [one.name for one in specifications if one.name is not None]
    refuse(
        [
            ProblemItem(
                message="Another specification has this name.",
                pointer=f"/specifications/{position}/name",
            )
            for position, one in enumerate(specifications)
            if one.name is not None and given.count(one.name) > 1
        ]
    )
    taken = set(given)
    names = []
    for one in specifications:
        name = one.name
        if name is None:
            name = _free(one.kinds_and_options, taken)
            taken.add(name)
        names.append(name)
    return names


def _free(wanted: str, taken: set[str]) -> str:
    """Return a name that none has, within what a name may hold."""
    start = wanted if len(wanted) <= _LONGEST_MADE else f"{wanted[: _LONGEST_MADE - 1]}…"
    numbered = (f"{start} ({number})" for number in range(2, len(taken) + 3))
    return next(name for name in (start, *numbered) if name not in taken)
