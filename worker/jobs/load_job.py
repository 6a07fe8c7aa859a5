"""What a claimed job is to do: its input read from the database, ready to be computed on."""

import logging
from collections.abc import Callable
from functools import partial
from typing import assert_never

from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.datasets.options import ReadLimits
from service.db.database import Database
from service.http.problems import ProblemError, problem_document
from service.jobs import checkpoints
from service.jobs.leases import Claim
from service.jobs.specs.bootstrap import BootstrapPartSpec, BootstrapSpec
from service.jobs.specs.comparison import ComparisonPartSpec, ComparisonSpec
from service.jobs.specs.difference import DifferencePartSpec, DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.experiment import ExperimentPartSpec, ExperimentSpec
from service.jobs.specs.mixture import MixtureEstimationSpec
from service.jobs.specs.scoring import ScoringSpec
from service.jobs.specs.simulation import SimulationSpec
from service.results.comparison_result import ComparisonPartResult
from service.results.outcome import Outcome
from service.results.schemas import DatasetIdentity
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from worker.jobs import bootstrap, comparison, difference
from worker.jobs.difference_sides import load_sides
from worker.jobs.estimated import load_estimated
from worker.jobs.estimation import EstimationRequest, OnStep, estimate
from worker.jobs.experiments import put_together, run_part, split
from worker.jobs.failures import JobFailedError
from worker.jobs.mixture import MixtureRequest, estimate_mixture
from worker.jobs.parts import Split, load_parts
from worker.jobs.scoring import load_estimate, score
from worker.jobs.simulation import simulate
from worker.jobs.versions import versions
from worker.settings import WorkerSettings

# Computes without the database; raises `FitCancelledError` when told to stop, `JobFailedError`
# where the job cannot be done.
Work = Callable[[OnStep], Outcome | Split]

logger = logging.getLogger("worker")


def load(database: Database, claim: Claim, settings: WorkerSettings) -> Work:
    """Return the work of a claimed job with everything that it needs.

    Raises `JobFailedError` where something that it needs has been deleted.
    """
    with database.repeatable_read() as session:
        match claim.spec:
            case EstimationSpec() as spec:
                return partial(estimate, load_request(session, claim, spec))
            case MixtureEstimationSpec() as spec:
                return partial(estimate_mixture, load_mixture(session, claim, spec))
            case SimulationSpec() as spec:
                return partial(simulate, spec, ReadLimits.from_settings(settings))
            case ScoringSpec() as spec:
                try:
                    estimated = load_estimate(session, spec)
                except ProblemError as gone:
                    raise JobFailedError(problem_document(gone.code, gone.detail)) from gone
                return partial(score, spec, estimated, claim.ground_truth or [])
            case ExperimentSpec() as spec:
                if not claim.is_split:
                    return partial(split, spec)
                return partial(put_together, spec, load_parts(session, claim.job_id))
            case ExperimentPartSpec() as spec:
                return partial(run_part, spec, _load_checkpoint(session, claim))
            case BootstrapSpec() as spec:
                if not claim.is_split:
                    return partial(bootstrap.split, spec)
                whole = load_estimated(session, spec.job_id)
                resamples = load_parts(session, claim.job_id)
                return partial(bootstrap.put_together, spec, whole, resamples)
            case BootstrapPartSpec() as spec:
                checkpoint = _load_checkpoint(session, claim)
                return partial(bootstrap.run_part, bootstrap.load_part(session, spec, checkpoint))
            case ComparisonSpec() as spec:
                if not claim.is_split:
                    return partial(comparison.split, spec)
                dataset = comparison.load_dataset(session, spec.dataset_id)
                models = load_parts(session, claim.job_id, ComparisonPartResult)
                return partial(comparison.put_together, spec, dataset, models)
            case ComparisonPartSpec() as spec:
                fit = load_request(session, claim, spec.estimation)
                return partial(comparison.run_part, comparison.PartRequest(spec, fit))
            case DifferenceSpec() as spec:
                sides = load_sides(session, spec)
                if not claim.is_split:
                    return partial(difference.split, spec, sides)
                permutations = load_parts(session, claim.job_id)
                return partial(difference.put_together, spec, sides, permutations)
            case DifferencePartSpec() as spec:
                checkpoint = _load_checkpoint(session, claim)
                sides = load_sides(session, spec)
                return partial(difference.run_part, difference.PartRequest(spec, sides, checkpoint))
            case _ as unknown:
                assert_never(unknown)


def load_request(session: Session, claim: Claim, spec: EstimationSpec) -> EstimationRequest:
    """Return an estimation's data and choices; its true graph is the one it was submitted with.

    Raises `LookupError` if the data set is gone, which the API does not allow while a job needs it.
    """
    stored = datasets.load_table(session, spec.dataset_id)
    return EstimationRequest(
        spec=spec,
        table=stored.table,
        texts=stored.texts,
        censored=stored.cells,
        ground_truth=claim.ground_truth,
        table_warnings=stored.warnings,
        dataset=DatasetIdentity(id=stored.dataset_id, name=stored.name, sha256=stored.sha256),
        summary=stored.summary,
        checkpoint=_load_checkpoint(session, claim),
    )


def _load_checkpoint(session: Session, claim: Claim) -> Checkpoint | None:
    """Return what an interrupted attempt had done, or None."""
    stored = checkpoints.load(session, claim.job_id, versions().vnce)
    if stored is None:
        return None
    try:
        checkpoint = Checkpoint.load(stored)
    except UnusableCheckpointError as error:
        logger.warning("job %s: begins anew: %s", claim.job_id, error)
        return None
    logger.info("job %s: goes on from its checkpoint", claim.job_id)
    return checkpoint


def load_mixture(session: Session, claim: Claim, spec: MixtureEstimationSpec) -> MixtureRequest:
    """Return the data and choices of an estimation of the mixture; raises as `load_request`."""
    stored = datasets.load_table(session, spec.dataset_id)
    return MixtureRequest(
        spec=spec,
        table=stored.table,
        censored=stored.cells,
        table_warnings=stored.warnings,
        dataset=DatasetIdentity(id=stored.dataset_id, name=stored.name, sha256=stored.sha256),
        checkpoint=_load_checkpoint(session, claim),
    )
