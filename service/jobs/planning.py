"""From a request to what would run: every choice made, what speaks against it, the warnings."""

from typing import assert_never

from sqlalchemy.orm import Session

from service.datasets.ground_truth import canonical_edges
from service.datasets.records import GroundTruthRecord
from service.http.problems import ProblemCode, ProblemError
from service.jobs.comparison_planning import comparison_warnings, plan_comparison
from service.jobs.difference_planning import plan_difference
from service.jobs.estimated_networks import network_of, refitted_spec
from service.jobs.estimation_planning import (
    describe_estimation,
    plan_estimation,
    warnings_about,
)
from service.jobs.mixture_planning import describe_mixture, mixture_warnings, plan_mixture
from service.jobs.planned_data import lock_dataset, planned_data
from service.jobs.plans import Plan
from service.jobs.schemas import JobPlan
from service.jobs.specs import JobCreate
from service.jobs.specs.base import chosen_seed, planned
from service.jobs.specs.bootstrap import BootstrapSpec
from service.jobs.specs.comparison import ComparisonSpec
from service.jobs.specs.difference import DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.experiment import ExperimentSpec
from service.jobs.specs.mixture import MixtureEstimationSpec
from service.jobs.specs.scoring import ScoringSpec
from service.jobs.specs.simulation import SimulationSpec


def plan(session: Session, request: JobCreate) -> Plan:
    """Return what `request` would run.

    Raises `ProblemError` where it names what is not there, or what does not fit together.
    """
    match request:
        case EstimationSpec():
            return plan_estimation(session, request)
        case MixtureEstimationSpec():
            return plan_mixture(session, request)
        case SimulationSpec():
            return Plan(spec=_simulation(request), data=None, ground_truth=None)
        case ExperimentSpec():
            spec = request.model_copy(update={"seed": chosen_seed(request.seed)})
            return Plan(spec=spec, data=None, ground_truth=None)
        case ScoringSpec():
            return _plan_scoring(session, request)
        case BootstrapSpec():
            return _plan_bootstrap(session, request)
        case ComparisonSpec():
            return plan_comparison(session, request)
        case DifferenceSpec():
            return plan_difference(session, request)
        case _:
            assert_never(request)


def describe(plan: Plan) -> JobPlan:
    """Return what the API says about a plan."""
    data = plan.data
    match plan.spec:
        case EstimationSpec() as spec:
            assert data is not None
            estimation = describe_estimation(spec, plan)
            return JobPlan(spec=spec, estimation=estimation, warnings=warnings_about(spec, data))
        case MixtureEstimationSpec() as spec:
            assert data is not None
            estimation = describe_mixture(spec, data)
            return JobPlan(spec=spec, estimation=estimation, warnings=mixture_warnings(data))
        case ComparisonSpec() as spec:
            assert data is not None
            warnings = comparison_warnings(spec, data)
            return JobPlan(spec=spec, estimation=None, warnings=warnings)
        case _:
            return JobPlan(spec=plan.spec, estimation=None, warnings=[])


def _simulation(request: SimulationSpec) -> SimulationSpec:
    seed = chosen_seed(request.seed)
    size = f"{request.n_rows}x{request.n_variables}"
    name = f"{request.graph}-{size}-{request.missing_fraction:g}-seed-{seed}"
    return request.model_copy(update={"seed": seed, "name": request.name or name})


def _plan_scoring(session: Session, request: ScoringSpec) -> Plan:
    """Return the plan; the graph is read now, so that a later one changes nothing."""
    job = network_of(session, request.job_id, "scored")
    names: list[str] = job.spec["variables"]
    if request.ground_truth is not None:
        edges = canonical_edges(request.ground_truth, names, "/ground_truth")
    else:
        truth = session.get(GroundTruthRecord, job.dataset_id)
        if truth is None:
            raise ProblemError(
                ProblemCode.GROUND_TRUTH_MISSING,
                "The estimation's data set has no ground truth: send one as `ground_truth`, or "
                f"PUT it at /v1/datasets/{job.dataset_id}/ground-truth.",
            )
        estimated = frozenset(names)
        edges = [edge for edge in truth.edges if estimated.issuperset(edge)]
    spec = request.model_copy(update={"ground_truth": None})
    return Plan(spec=spec, data=None, ground_truth=edges)


def _plan_bootstrap(session: Session, request: BootstrapSpec) -> Plan:
    """Return the plan; the data set stays as long as the job does."""
    job = network_of(session, request.job_id, "bootstrapped")
    estimation = refitted_spec(job)
    dataset = lock_dataset(session, estimation.dataset_id)
    spec = request.model_copy(update={"seed": chosen_seed(request.seed)})
    return Plan(
        spec=spec, data=planned_data(dataset, planned(estimation.variables)), ground_truth=None
    )
