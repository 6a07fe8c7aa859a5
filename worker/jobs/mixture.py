"""One estimation of the mixture, from a column to everything that is stored of it."""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from service.datasets.schemas import DatasetWarning
from service.http.problems import ProblemCode, problem_document
from service.jobs.specs.base import planned
from service.jobs.specs.mixture import (
    MixtureEstimationSpec,
    MixtureMleEstimatorSpec,
    MixtureNceEstimatorSpec,
    MixtureVnceEstimatorSpec,
)
from service.jobs.vocabulary import MixtureClimb
from service.results.outcome import Outcome
from service.results.schemas import DatasetIdentity
from vnce_engine.experiments.mixture.fit import MixtureFit, fit_mixture
from vnce_engine.experiments.mixture.options import Estimator, Form, MixtureOptions
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.reports import FitStatus, FitStep
from worker.artefacts.fitted import to_array
from worker.artefacts.mixture_files import mixture_artefacts
from worker.artefacts.report.mixture import mixture_section
from worker.artefacts.report.rendering import job_report
from worker.jobs.estimation import FITTED, PREPARED, OnStep, count_censored, report
from worker.jobs.failures import JobFailedError, incompatible
from worker.jobs.mixture_document import encode_mixture
from worker.jobs.resuming import resume_or_restart


@dataclass(frozen=True)
class MixtureRequest:
    """Everything that decides an estimation; the same request gives the same numbers."""

    spec: MixtureEstimationSpec
    # Columns of doubles, null where no number is known.
    table: pa.Table
    # Cells such as `<0.5` or `ND`, by `column`; see `service.datasets.readers.cells.CELL_SCHEMA`.
    censored: pa.Table
    # What was odd about the table when it was uploaded.
    table_warnings: list[DatasetWarning]
    dataset: DatasetIdentity
    # What an interrupted attempt at this estimation had done.
    checkpoint: Checkpoint | None = None


def estimate_mixture(request: MixtureRequest, on_step: OnStep) -> Outcome:
    """Fit the mixture to the values of its column and make every derived file.

    Rows without a value are left out: they would add the same number to every objective. `on_step`
    and what is raised are those of `worker.jobs.estimation.estimate`.
    """
    spec = request.spec
    report(on_step, "prepare", 0.0)
    censored = count_censored(planned(spec.variables), spec.censored, request.censored)
    column = to_array(request.table.select(planned(spec.variables)))[:, 0]
    rows = np.flatnonzero(~np.isnan(column))
    report(on_step, "prepare", PREPARED)

    started = time.perf_counter()
    fit, resumed = resume_or_restart(partial(_fit, spec, column[rows], on_step), request.checkpoint)
    fit_seconds = time.perf_counter() - started

    report(on_step, "export", FITTED)
    started = time.perf_counter()
    artefacts = mixture_artefacts(spec, fit, column[rows], rows + 1, request.dataset.name)
    document = encode_mixture(
        spec,
        fit,
        request.dataset,
        num_rows=len(column),
        censored=censored,
        table_warnings=request.table_warnings,
        fit_seconds=fit_seconds,
        export_seconds=time.perf_counter() - started,
        resumed=resumed,
    )
    section = mixture_section(spec, document, artefacts)
    artefacts.append(job_report(section, [], document.seed, document.versions))
    report(on_step, "export", 1.0)
    return Outcome(document=document, edges=[], artefacts=artefacts)


def build_options(spec: MixtureEstimationSpec) -> MixtureOptions:
    """Return the engine's options for what the spec describes."""
    common = MixtureOptions(
        form=Form(spec.model.form),
        sigma_1=spec.model.sigma_1,
        num_starts=spec.estimator.n_starts,
        max_iterations=spec.estimator.max_iter,
    )
    match spec.estimator:
        case MixtureVnceEstimatorSpec(climb=climb, noise_ratio=ratio, noise_scale=scale):
            is_joint = climb is MixtureClimb.JOINT
            kind = Estimator.VNCE if is_joint else Estimator.EXACT_EM
            return replace(common, estimator=kind, noise_ratio=ratio, noise_scale=scale)
        case MixtureNceEstimatorSpec(noise_ratio=ratio, noise_scale=scale):
            return replace(common, estimator=Estimator.NCE, noise_ratio=ratio, noise_scale=scale)
        case MixtureMleEstimatorSpec():
            return replace(common, estimator=Estimator.MLE)
        case _ as unknown:
            assert_never(unknown)


def _fit(
    spec: MixtureEstimationSpec, x: NDArray[np.float64], on_step: OnStep, checkpoint: Checkpoint
) -> MixtureFit:
    def on_fit_step(step: FitStep) -> bool | None:
        fraction = PREPARED + (FITTED - PREPARED) * step.fraction
        return on_step(replace(step, fraction=fraction))

    try:
        fit = fit_mixture(x, build_options(spec), planned(spec.seed), on_fit_step, checkpoint)
    except UnusableCheckpointError:
        raise
    except ValueError as refusal:
        # What the engine refuses is data or options, never an accident of ours.
        raise incompatible(str(refusal)) from refusal
    if fit.status is FitStatus.NON_FINITE:
        raise JobFailedError(problem_document(ProblemCode.NON_FINITE_OBJECTIVE, fit.message))
    return fit
