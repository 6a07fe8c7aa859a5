"""Models of a table in a file, compared on the cores of this machine."""

from collections.abc import Sequence
from pathlib import Path

import pydantic

from service.datasets.options import ReadLimits
from service.http.problems import Problem
from service.jobs.comparison_planning import resolve_comparison
from service.jobs.specs.comparison import ComparisonPartSpec, ComparisonSpec
from service.results.comparison_result import ComparisonPartResult
from service.results.outcome import Outcome
from service.results.parts_result import PartFailureRead
from worker.artefacts.comparison_files import HELD_OUT, PAIRS
from worker.cli.client import JsonObject
from worker.cli.exit_codes import ExitCode
from worker.cli.flag_names import in_flags
from worker.cli.local_processes import in_processes
from worker.cli.local_result import result_files
from worker.cli.local_table import LocalTable
from worker.cli.printing import ERR, OUT, print_json
from worker.cli.progress import board
from worker.cli.result_folder import say_written, write_result
from worker.cli.result_summary import print_result
from worker.cli.validation import validated
from worker.jobs.comparison import PartRequest, parts_of, put_together, run_part
from worker.jobs.estimation import EstimationRequest
from worker.jobs.failures import JobFailedError
from worker.jobs.parts import FinishedParts

# What a service gives identifiers.
_LOCAL = "local"
_STAGE = "models"


def compare_file(
    path: Path,
    out: Path | None,
    reading: JsonObject,
    request: JsonObject,
    limits: ReadLimits,
    *,
    as_json: bool,
) -> ExitCode:
    """Read, compare, write every file below `out`, print a summary (or the result as JSON).

    Raises `ProblemError` for a table that cannot be read, is larger than `limits` allow or does
    not fit a model, and `JobFailedError` where no model can be fitted.
    """
    adapter = pydantic.TypeAdapter(ComparisonSpec)
    job = validated(adapter, request | {"dataset_id": _LOCAL})
    local = LocalTable.read(path, reading, _LOCAL, limits)
    spec = resolve_comparison(job, local.dataset.summary)
    parts = parts_of(spec)
    requests = [
        PartRequest(
            part,
            EstimationRequest(part.estimation, texts=None, ground_truth=None, **local.inputs()),
        )
        for part in parts
    ]
    done: list[Outcome | Problem] = []
    with board(ERR) as add:
        show = add(path.name)
        show(_STAGE, 0.0, None)
        for one in in_processes(_run, requests):
            done.append(one)
            show(_STAGE, len(done) / len(requests), None)
    pairs, held_out = (_finished(parts, done, file) for file in (PAIRS, HELD_OUT))
    outcome = put_together(spec, local.identity, pairs, held_out, lambda step: None)
    document, files = result_files(outcome)
    if out is not None:
        write_result(out, files)
    if as_json:
        print_json(document)
        return ExitCode.OK
    for change in local.dataset.summary.changes:
        OUT.print(f"reading: {in_flags(change.message)}", markup=False, highlight=False)
    print_result(OUT, document)
    if out is not None:
        say_written(OUT, out, files)
    return ExitCode.OK


def _run(request: PartRequest) -> Outcome | Problem:
    """Return what a part leaves, or why it has failed."""
    try:
        return run_part(request, lambda step: None)
    except JobFailedError as error:
        return error.problem


def _finished(
    parts: Sequence[ComparisonPartSpec], done: Sequence[Outcome | Problem], file: str
) -> FinishedParts:
    """Return the parts as the database has them, each with one of its files."""
    outcomes = [one for one in done if isinstance(one, Outcome)]
    return FinishedParts(
        len(parts),
        [a.content for one in outcomes for a in one.artefacts if a.name == file],
        [ComparisonPartResult.model_validate(one.document.model_dump()) for one in outcomes],
        [
            PartFailureRead(job_id=_LOCAL, label=part.label, error=one)
            for part, one in zip(parts, done, strict=True)
            if isinstance(one, Problem)
        ],
    )
