"""`vnce fit`: one table to one folder of results, without a service."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import assert_never

import pydantic
import typer

from service.datasets.graph_documents import GroundTruthCreate
from service.datasets.ground_truth import canonical_edges
from service.datasets.options import ReadLimits
from service.datasets.readers.names import clean_name
from service.datasets.readers.refusals import shorten
from service.datasets.reading import ReadDataset
from service.jobs.estimated_networks import is_by_half_samples
from service.jobs.estimation_planning import resolve
from service.jobs.mixture_planning import resolve_mixture
from service.jobs.specs import AnyEstimationSpec
from service.jobs.specs.contrastive import ContrastiveSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.mixture import MixtureEstimationSpec
from service.results.outcome import Outcome
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.ground_truth import pair
from worker.cli.client import JsonObject
from worker.cli.exit_codes import ExitCode
from worker.cli.flag_names import in_flags
from worker.cli.local_bootstrap import bootstrap_here, bootstrap_spec
from worker.cli.local_difference import difference_here, difference_spec
from worker.cli.local_result import result_files
from worker.cli.local_table import LocalTable
from worker.cli.network_summary import NUM_TOP_EDGES
from worker.cli.printing import ERR, OUT, print_json, to_json
from worker.cli.progress import board
from worker.cli.result_folder import say_written, write_result
from worker.cli.result_summary import exit_code, print_result
from worker.cli.truth_file import read_truth_file
from worker.cli.validation import validated
from worker.jobs.difference_sides import labelled_groups
from worker.jobs.estimation import EstimationRequest, FollowUp, OnStep, estimate_and_follow
from worker.jobs.mixture import MixtureRequest, estimate_mixture

BOOTSTRAP, DIFFERENCE = "bootstrap.json", "difference.json"


@dataclass(frozen=True)
class FollowUps:
    """What is asked for beside the network itself."""

    n_resamples: int | None
    n_subsets: int
    by: str | None
    n_permutations: int


def fit_file(
    path: Path,
    out: Path,
    truth: Path | None,
    reading: JsonObject,
    request: JsonObject,
    limits: ReadLimits,
    wanted: FollowUps,
    *,
    as_json: bool,
) -> ExitCode:
    """Read, fit, write every file below `out`, print a summary (or the result as JSON).

    Raises `ProblemError` for a table that cannot be read, is larger than `limits` allow or does
    not fit the model, and `JobFailedError` where the numerics allow no result, or a column tells
    no two groups.
    """
    local = LocalTable.read(path, reading, request, limits, by=wanted.by)
    dataset = local.dataset
    true_edges = None if truth is None else _true_edges(truth, dataset)
    if wanted.by is not None:
        request = _without(request, wanted.by, dataset)
    estimation = estimation_of(job_of(request), local, true_edges)
    follow_ups = _follow_ups(estimation, wanted)
    with board(ERR) as add:
        show = add(path.name)

        def on_step(step: FitStep) -> None:
            show(step.stage, step.fraction, step.objective)

        outcome, others = _run(estimation, follow_ups, on_step)
    document, files = result_files(outcome)
    for name, other in others.items():
        # Its report is a section of the network's.
        files = {artefact.name: artefact.content for artefact in other.artefacts} | files
        files[name] = to_json(other.document.model_dump(mode="json")).encode()
    write_result(out, files)
    if as_json:
        print_json(document)
    else:
        for change in dataset.summary.changes:
            OUT.print(f"reading: {in_flags(change.message)}", markup=False, highlight=False)
        graph = None if true_edges is None else frozenset(pair(*edge) for edge in true_edges)
        print_result(OUT, document, outcome.edges[:NUM_TOP_EDGES], graph)
        for other in others.values():
            print_result(OUT, other.document.model_dump(mode="json"))
        say_written(OUT, out, files)
    return exit_code(document)


def _without(request: JsonObject, by: str, dataset: ReadDataset) -> JsonObject:
    """Return the request for a network without the column of groups.

    Raises `BadParameter` where it was asked for as a variable.
    """
    names = dataset.table.column_names
    variables = request.get("variables")
    if variables is None:
        aside = (by, request.get("cluster"))
        return request | {"variables": [name for name in names if name not in aside]}
    if by in map(clean_name, variables):
        told = f"{shorten(by)} is a variable of the network, by --variable"
        raise typer.BadParameter(told, param_hint="--by")
    return request


def _run(
    estimation: EstimationRequest | MixtureRequest,
    follow_ups: dict[str, FollowUp],
    on_step: OnStep,
) -> tuple[Outcome, dict[str, Outcome]]:
    """Return what comes of an estimation, and of each follow-up by its name."""
    match estimation:
        case EstimationRequest():
            return estimate_and_follow(estimation, follow_ups, on_step)
        case MixtureRequest():
            return estimate_mixture(estimation, on_step), {}
        case _ as unknown:
            assert_never(unknown)


def _follow_ups(
    estimation: EstimationRequest | MixtureRequest, wanted: FollowUps
) -> dict[str, FollowUp]:
    """Return what is to be done with an estimation's outcome, by the names of its documents.

    Raises `BadParameter` where it cannot be, and `JobFailedError` where groups do not do.
    """
    found: dict[str, FollowUp] = {}
    if wanted.n_resamples is not None:
        spec = _network(estimation, "--resamples")
        _refuse_half_samples(spec, "--resamples")
        request = bootstrap_spec(wanted.n_resamples, wanted.n_subsets, spec.seed)
        found[BOOTSTRAP] = partial(bootstrap_here, request, spec)
    if wanted.by is not None:
        spec = network_with_errors(estimation, "--by")
        _refuse_half_samples(spec, "--by")
        labelled_groups(spec, estimation.table, wanted.by)
        comparison = difference_spec(spec, wanted.by, wanted.n_permutations)
        found[DIFFERENCE] = partial(difference_here, comparison, spec)
    return found


def _refuse_half_samples(spec: EstimationSpec, flag: str) -> None:
    if is_by_half_samples(spec):
        told = (
            "a graph that half-samples chose (--selection stability) cannot be held in other fits"
        )
        raise typer.BadParameter(told, param_hint=flag)


def _network(estimation: EstimationRequest | MixtureRequest, flag: str) -> EstimationSpec:
    if isinstance(estimation, EstimationRequest):
        return estimation.spec
    raise typer.BadParameter("a mixture has no network", param_hint=flag)


def network_with_errors(
    estimation: EstimationRequest | MixtureRequest, flag: str
) -> EstimationSpec:
    """Return what is asked of a network whose edges have standard errors.

    Raises `BadParameter`, which names the `flag`, where they cannot have any.
    """
    spec = _network(estimation, flag)
    if not isinstance(spec.estimator, ContrastiveSpec):
        raise typer.BadParameter(f"{spec.estimator.kind} has no standard errors", param_hint=flag)
    return spec


def job_of(request: JsonObject) -> EstimationSpec | MixtureEstimationSpec:
    """Return the job that is asked for; raises `ProblemError` that lists every fault."""
    adapter: pydantic.TypeAdapter[EstimationSpec | MixtureEstimationSpec]
    adapter = pydantic.TypeAdapter(AnyEstimationSpec)
    return validated(adapter, request)


def estimation_of(
    job: EstimationSpec | MixtureEstimationSpec,
    local: LocalTable,
    true_edges: list[list[str]] | None,
) -> EstimationRequest | MixtureRequest:
    """Return what is estimated, every choice made as the service would; raises `ProblemError`."""
    summary, inputs = local.dataset.summary, local.inputs()
    match job:
        case EstimationSpec():
            spec = resolve(job, summary)
            return EstimationRequest(
                spec, texts=local.texts, ground_truth=true_edges, summary=summary, **inputs
            )
        case MixtureEstimationSpec():
            if true_edges is not None:
                raise typer.BadParameter("a mixture has no graph to score", param_hint="--truth")
            return MixtureRequest(resolve_mixture(job, summary), **inputs)
        case _ as unknown:
            assert_never(unknown)


def _true_edges(path: Path, dataset: ReadDataset) -> list[list[str]]:
    graph = validated(pydantic.TypeAdapter(GroundTruthCreate), read_truth_file(path))
    return canonical_edges(graph, dataset.table.column_names)
