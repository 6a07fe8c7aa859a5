"""`vnce impute`: one table to the same table without missing cells, or to several of them."""

from pathlib import Path

import pydantic
import typer

from service.datasets.options import ReadLimits
from service.http.words import counted
from service.jobs.estimation_planning import resolve
from service.jobs.specs.estimation import EstimationSpec
from service.results.outcome import Artefact
from service.results.schemas import CountsRead
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.network_files import mean_imputations, multiple_imputations
from worker.cli.client import JsonObject
from worker.cli.exit_codes import ExitCode
from worker.cli.flag_names import in_flags
from worker.cli.local_table import LocalTable
from worker.cli.network_summary import print_fit
from worker.cli.printing import ERR, OUT, print_error
from worker.cli.progress import board
from worker.cli.result_summary import exit_code
from worker.cli.validation import validated
from worker.jobs.estimation import EstimationRequest, estimate_files

SUFFIXES = (".csv", ".parquet")


def output_of(path: Path, output: Path | None) -> Path:
    """Return where the completed table goes; raises `typer.BadParameter` if it cannot."""
    if output is None:
        suffix = path.suffix.lower() if path.suffix.lower() in SUFFIXES else SUFFIXES[0]
        output = Path(f"{path.stem}-imputed{suffix}")
    if output.suffix.lower() not in SUFFIXES:
        message = f"must end in {' or '.join(SUFFIXES)}, got {output.name}"
        raise typer.BadParameter(message, param_hint="--output")
    if output.resolve() == path.resolve():
        raise typer.BadParameter("must not be the table itself", param_hint="--output")
    if not output.parent.is_dir():
        raise typer.BadParameter(f"{output.parent} is no folder", param_hint="--output")
    return output


def impute_file(
    path: Path, output: Path, reading: JsonObject, request: JsonObject, limits: ReadLimits
) -> ExitCode:
    """Read, fit, write the completed table, or `imputations` of them, and say what was filled.

    Raises `ProblemError` for a table that cannot be read, is larger than `limits` allow or does
    not fit the model, and `JobFailedError` where the numerics allow no result.
    """
    job = validated(pydantic.TypeAdapter(EstimationSpec), request)
    local = LocalTable.read(path, reading, request, limits)
    spec = resolve(job, local.dataset.summary)
    maker = mean_imputations if spec.imputations is None else multiple_imputations
    estimation = EstimationRequest(spec, texts=local.texts, ground_truth=None, **local.inputs())
    with board(ERR) as add:
        show = add(path.name)

        def on_step(step: FitStep) -> None:
            show(step.stage, step.fraction, step.objective)

        _, result, artefacts = estimate_files(estimation, on_step, (maker,))
        show("export", 1.0, None)
    for change in local.dataset.summary.changes:
        OUT.print(f"reading: {in_flags(change.message)}", markup=False, highlight=False)
    print_fit(OUT, result)
    content = _content(artefacts, output.suffix.lower())
    if content is None:
        print_error("Nothing was written: see the warnings.")
        return ExitCode.FAILED
    output.write_bytes(content)
    OUT.print(f"{_filled(result.counts)} {_how(spec)}: {output}.", markup=False, highlight=False)
    return exit_code(result.model_dump())


def _content(artefacts: list[Artefact], suffix: str) -> bytes | None:
    """Return the completed table as such a file; None where none could be drawn."""
    contents = [a.content for a in artefacts if a.name.endswith(suffix)]
    return contents[0] if contents else None


def _filled(counts: CountsRead) -> str:
    cells = counts.n_rows * counts.n_variables
    return f"{counts.n_missing} of {counted(cells, 'cell')} filled"


def _how(spec: EstimationSpec) -> str:
    if spec.imputations is None:
        return "by their conditional means"
    tables = counted(spec.imputations, "table")
    return f"by draws, in {tables} one below the other"
