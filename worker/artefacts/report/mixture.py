"""What a report says of the mixture of two normals in one column."""

from collections.abc import Iterator, Sequence

from service.http.words import counted
from service.jobs.specs.mixture import (
    MixtureEstimationSpec,
    MixtureMleEstimatorSpec,
    MixtureNceEstimatorSpec,
    MixtureVnceEstimatorSpec,
)
from service.jobs.vocabulary import MixtureForm
from service.results.mixture_result import EstimateRead, MixtureResult, MixtureStartRead
from service.results.outcome import Artefact
from vnce_engine.inference.interval import Interval
from worker.artefacts.report.section import Row, Section, Table, number, pictures

_FIGURES = {
    "density": "The values, the mixture that was fitted to them, and its components.",
}


def mixture_section(
    spec: MixtureEstimationSpec, result: MixtureResult, artefacts: Sequence[Artefact]
) -> Section:
    """Return what to say of it, with the figure among its `artefacts`."""
    found = [("θ", result.theta), ("c", result.log_partition)]
    return Section(
        heading=f"Mixture of two normals: {result.name} of {result.dataset.name}",
        verdict=(
            f"{'C' if result.convergence.converged else 'Not c'}onverged: "
            f"{result.convergence.message} The component of unknown standard deviation has "
            f"θ = {result.theta.value:.4g} and {result.weights.free:.1%} of the weight."
        ),
        facts=list(_facts(result)),
        pictures=pictures(artefacts, _FIGURES),
        tables=[
            Table(
                "Estimates: θ in the units of the column"
                + ("." if result.log_partition is None else ", c the log of the constant."),
                ("parameter", "estimate", "standard error", "95 % interval"),
                [_estimate(name, one) for name, one in found if one is not None],
            ),
            Table(
                "Where each random start has led; bold those that reached the best optimum.",
                ("start", "θ", "c", "objective per value"),
                [_start(place, start) for place, start in enumerate(result.starts, start=1)],
            ),
        ],
        methods=" ".join(_methods(spec, result)),
    )


def _facts(result: MixtureResult) -> Iterator[str]:
    counts = result.counts
    yield (
        f"{counted(counts.n_fitted_values, 'value')} of {counted(counts.n_rows, 'row')}; the known "
        f"component has σ₁ = {result.sigma_1:g} and {result.weights.known:.1%} of the weight."
    )
    for warning in result.warnings:
        yield warning.message
    yield result.assumption


def _estimate(name: str, estimate: EstimateRead) -> Row:
    error = estimate.standard_error
    found = None if error is None else Interval.of(estimate.value, error)
    ends = "" if found is None else f"{found.lower:.4g} to {found.upper:.4g}"
    return Row(name, [f"{estimate.value:.5g}", number(error, ".2g"), ends])


def _start(place: int, start: MixtureStartRead) -> Row:
    cells = (start.theta, start.log_partition, start.objective)
    return Row(str(place), [number(cell, ".5g") for cell in cells], is_bold=start.is_best)


def _methods(spec: MixtureEstimationSpec, result: MixtureResult) -> Iterator[str]:
    weights = (
        "weighing as their standard deviations do, and the log partition c estimated with θ"
        if result.form is MixtureForm.UNNORMALISED
        else "each weighing one half"
    )
    yield (
        f"The values were modelled by two normals about zero, {weights} (Rhodes and Gutmann, 2019, "
        f"section 4.2). θ was estimated by {_estimator(spec)}, from "
        f"{counted(len(result.starts), 'random start')}, of which the one whose objective ended "
        "highest was kept."
    )
    if result.theta.standard_error is not None:
        yield "Standard errors are by the sandwich formula (White, 1982)."


def _estimator(spec: MixtureEstimationSpec) -> str:
    match spec.estimator:
        case MixtureVnceEstimatorSpec(noise_ratio=ratio):
            return (
                "variational noise-contrastive estimation, the component of a value its latent "
                f"variable, with {ratio} noise values per value"
            )
        case MixtureNceEstimatorSpec(noise_ratio=ratio):
            return (
                "noise-contrastive estimation (Gutmann and Hyvärinen, 2012), the component summed "
                f"out, with {ratio} noise values per value"
            )
        case MixtureMleEstimatorSpec():
            return "maximum likelihood"
