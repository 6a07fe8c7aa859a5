"""From a fitted mixture to the result document."""

from collections.abc import Sequence

import torch

from service.datasets.schemas import DatasetWarning
from service.http.words import counted
from service.jobs.mixture_planning import NO_CONCERN
from service.jobs.specs.base import planned
from service.jobs.specs.mixture import MixtureEstimationSpec, MixtureMleEstimatorSpec
from service.results.mixture_result import (
    EstimateRead,
    MixtureCountsRead,
    MixtureNoiseRead,
    MixtureResult,
    MixtureStartRead,
    MixtureWeightsRead,
)
from service.results.schemas import ConvergenceRead, DatasetIdentity, ResultWarning, TimingRead
from service.results.vocabulary import FitStatus
from vnce_engine.experiments.mixture.fit import MixtureFit
from worker.jobs.network_document import COMPLETE, MCAR, finite
from worker.jobs.result_warnings import censoring_warnings, upload_warnings
from worker.jobs.versions import versions


def encode_mixture(
    spec: MixtureEstimationSpec,
    fit: MixtureFit,
    dataset: DatasetIdentity,
    *,
    num_rows: int,
    censored: dict[str, int],
    table_warnings: Sequence[DatasetWarning],
    fit_seconds: float,
    export_seconds: float,
    resumed: bool,
) -> MixtureResult:
    """Return the document of a finished fit to the column's values.

    `censored` counts the cells that hold a limit and were treated as missing; `table_warnings` are
    those of the upload, all columns of which it may concern.
    """
    [name] = planned(spec.variables)
    num_missing = num_rows - len(fit.responsibilities)
    concerning = [warning for warning in table_warnings if warning.code not in NO_CONCERN]
    return MixtureResult(
        kind="mixture",
        name=name,
        form=spec.model.form,
        sigma_1=spec.model.sigma_1,
        theta=EstimateRead(value=fit.theta, standard_error=finite(fit.theta_se)),
        log_partition=None
        if fit.log_partition is None
        else EstimateRead(value=fit.log_partition, standard_error=finite(fit.log_partition_se)),
        weights=MixtureWeightsRead(known=fit.known_weight, free=1 - fit.known_weight),
        convergence=_convergence(fit),
        starts=[
            MixtureStartRead(
                theta=finite(start.theta),
                log_partition=finite(start.log_partition),
                objective=finite(start.objective),
                is_best=start.is_best,
            )
            for start in fit.starts
        ],
        n_best=fit.num_best,
        noise=_noise(spec, fit),
        warnings=[
            *censoring_warnings(censored),
            *_left_out(name, num_missing),
            *upload_warnings(concerning, planned(spec.variables)),
            *(ResultWarning(code=w.code, message=w.message, columns=[name]) for w in fit.warnings),
        ],
        assumption=MCAR if num_missing else COMPLETE,
        counts=MixtureCountsRead(
            n_rows=num_rows,
            n_fitted_values=len(fit.responsibilities),
            n_missing=num_missing,
            n_censored=sum(censored.values()),
        ),
        seed=planned(spec.seed),
        versions=versions(),
        dataset=dataset,
        timing=TimingRead(
            fit_seconds=fit_seconds,
            export_seconds=export_seconds,
            n_threads=torch.get_num_threads(),
            resumed=resumed,
        ),
    )


def _convergence(fit: MixtureFit) -> ConvergenceRead:
    status = FitStatus(fit.status)
    return ConvergenceRead(
        status=status,
        converged=status is FitStatus.CONVERGED,
        message=fit.message,
        n_iter=len(fit.objective_path),
        objective=finite(fit.objective_path[-1]),
        gradient_norm=finite(fit.gradient_norm),
    )


def _noise(spec: MixtureEstimationSpec, fit: MixtureFit) -> MixtureNoiseRead | None:
    if isinstance(spec.estimator, MixtureMleEstimatorSpec):
        return None
    assert fit.overlap is not None
    assert fit.noise_sigma is not None
    return MixtureNoiseRead(
        sigma=fit.noise_sigma,
        ratio=spec.estimator.noise_ratio,
        separated_share=fit.overlap.separated_share,
        confusion=fit.overlap.confusion,
        effective_share=fit.overlap.effective_noise,
    )


def _left_out(name: str, num_missing: int) -> list[ResultWarning]:
    if num_missing == 0:
        return []
    return [
        ResultWarning(
            code="rows-left-out",
            message=f"{counted(num_missing, 'row has', 'rows have')} no value and "
            f"{'was' if num_missing == 1 else 'were'} left out: in a table of one column such rows "
            "say nothing.",
            columns=[name],
        )
    ]
