"""`vnce fit`: one table to one folder of results, without a service."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import assert_never

import pyarrow as pa
import pydantic
import typer

from service.datasets.graph_documents import GroundTruthCreate
from service.datasets.ground_truth import canonical_edges
from service.datasets.options import ReadLimits
from service.datasets.reading import ReadDataset
from service.jobs.estimation_planning import resolve
from service.jobs.mixture_planning import resolve_mixture
from service.jobs.specs import AnyEstimationSpec
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.mixture import MixtureEstimationSpec
from service.results.outcome import Outcome
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.ground_truth import pair
from worker.cli.client import JsonObject
from worker.cli.exit_codes import ExitCode
from worker.cli.flag_names import in_flags
from worker.cli.local_bootstrap import bootstrap_here, bootstrap_spec
from worker.cli.local_result import result_files
from worker.cli.local_table import LocalTable
from worker.cli.network_summary import NUM_TOP_EDGES
from worker.cli.printing import ERR, OUT, print_json, to_json
from worker.cli.progress import board
from worker.cli.result_folder import say_written, write_result
from worker.cli.result_summary import exit_code, print_result
from worker.cli.truth_file import read_truth_file
from worker.cli.validation import validated
from worker.jobs.estimation import EstimationRequest, OnStep, estimate
from worker.jobs.mixture import MixtureRequest, estimate_mixture

BOOTSTRAP = "bootstrap.json"


def fit_file(
    path: Path,
    out: Path,
    truth: Path | None,
    reading: JsonObject,
    request: JsonObject,
    limits: ReadLimits,
    n_resamples: int | None,
    *,
    as_json: bool,
) -> ExitCode:
    """Read, fit, write every file below `out`, print a summary (or the result as JSON).

    With `n_resamples` the network is bootstrapped, too. Raises `ProblemError` for a table that
    cannot be read, is larger than `limits` allow or does not fit the model, and `JobFailedError`
    where the numerics allow no result.
    """
    local = LocalTable.read(path, reading, request["dataset_id"], limits)
    dataset = local.dataset
    true_edges = None if truth is None else _true_edges(truth, dataset)
    run = _work(_job(request), local, true_edges)
    bootstrap = None if n_resamples is None else _bootstrap(run, n_resamples)
    with board(ERR) as add:
        show = add(path.name)

        def on_step(step: FitStep) -> None:
            show(step.stage, step.fraction, step.objective)

        outcome = run(on_step)
        resampled = None if bootstrap is None else bootstrap(outcome, dataset.table, on_step)
    document, files = result_files(outcome)
    if resampled is not None:
        files |= {artefact.name: artefact.content for artefact in resampled.artefacts}
        files[BOOTSTRAP] = to_json(resampled.document.model_dump(mode="json")).encode()
    write_result(out, files)
    if as_json:
        print_json(document)
    else:
        for change in dataset.summary.changes:
            OUT.print(f"reading: {in_flags(change.message)}", markup=False, highlight=False)
        graph = None if true_edges is None else frozenset(pair(*edge) for edge in true_edges)
        print_result(OUT, document, outcome.edges[:NUM_TOP_EDGES], graph)
        if resampled is not None:
            print_result(OUT, resampled.document.model_dump(mode="json"))
        say_written(OUT, out, files)
    return exit_code(document)


def _bootstrap(
    run: Callable[[OnStep], Outcome], n_resamples: int
) -> Callable[[Outcome, pa.Table, OnStep], Outcome]:
    """Return the bootstrap of an estimation's outcome; raises `BadParameter` for a mixture's."""
    assert isinstance(run, partial)
    [estimation] = run.args
    if not isinstance(estimation, EstimationRequest):
        raise typer.BadParameter("a mixture has no network", param_hint="--resamples")
    request = bootstrap_spec(n_resamples, estimation.spec.seed)
    return partial(bootstrap_here, request, estimation.spec)


def _job(request: JsonObject) -> EstimationSpec | MixtureEstimationSpec:
    adapter: pydantic.TypeAdapter[EstimationSpec | MixtureEstimationSpec]
    adapter = pydantic.TypeAdapter(AnyEstimationSpec)
    return validated(adapter, request)


def _work(
    job: EstimationSpec | MixtureEstimationSpec,
    local: LocalTable,
    true_edges: list[list[str]] | None,
) -> Callable[[OnStep], Outcome]:
    """Return the job's work, every choice made as the service would; raises `ProblemError`."""
    summary, inputs = local.dataset.summary, local.inputs()
    match job:
        case EstimationSpec():
            spec = resolve(job, summary)
            estimation = EstimationRequest(
                spec, texts=local.texts, ground_truth=true_edges, summary=summary, **inputs
            )
            return partial(estimate, estimation)
        case MixtureEstimationSpec():
            if true_edges is not None:
                raise typer.BadParameter("a mixture has no graph to score", param_hint="--truth")
            mixture = resolve_mixture(job, summary)
            return partial(estimate_mixture, MixtureRequest(mixture, **inputs))
        case _ as unknown:
            assert_never(unknown)


def _true_edges(path: Path, dataset: ReadDataset) -> list[list[str]]:
    graph = validated(pydantic.TypeAdapter(GroundTruthCreate), read_truth_file(path))
    return canonical_edges(graph, dataset.table.column_names)
