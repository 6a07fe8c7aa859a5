"""Models of a table in a file, compared on the cores of this machine."""

from pathlib import Path

import pydantic

from service.datasets.options import ReadLimits
from service.jobs.comparison_planning import resolve_comparison
from service.jobs.specs.comparison import ComparisonSpec
from service.results.comparison_result import ComparisonPartResult
from worker.cli.client import JsonObject
from worker.cli.exit_codes import ExitCode
from worker.cli.flag_names import in_flags
from worker.cli.local import LOCAL
from worker.cli.local_parts import finish_parts
from worker.cli.local_result import result_files
from worker.cli.local_table import LocalTable
from worker.cli.printing import ERR, OUT, print_json
from worker.cli.progress import board
from worker.cli.result_folder import say_written, write_result
from worker.cli.result_summary import print_result
from worker.cli.validation import validated
from worker.jobs.comparison import PartRequest, parts_of, put_together, run_part
from worker.jobs.estimation import EstimationRequest

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
    request = request | {"dataset_id": LOCAL}
    job = validated(adapter, request)
    local = LocalTable.read(path, reading, request, limits)
    spec = resolve_comparison(job, local.dataset.summary)
    requests = [
        PartRequest(
            part,
            EstimationRequest(part.estimation, texts=None, ground_truth=None, **local.inputs()),
        )
        for part in parts_of(spec)
    ]
    with board(ERR) as add:
        show = add(path.name)
        show(_STAGE, 0.0, None)
        finished = finish_parts(
            run_part,
            requests,
            _STAGE,
            lambda step: show(step.stage, step.fraction, None),
            ComparisonPartResult,
        )
    outcome = put_together(spec, local.identity, finished, lambda step: None)
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
