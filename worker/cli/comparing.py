"""`vnce compare` and `difference`: of tables in files here, or of what a service has."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from service.datasets.options import ReadLimits
from service.jobs.specs.comparison import MOST_SPECIFICATIONS
from service.settings import Settings
from worker.cli.client import JsonObject
from worker.cli.local import LOCAL
from worker.cli.options import (
    COMPARISON,
    DEFAULT_URL,
    DIFFERENCE,
    ESTIMATION,
    READING,
    Json,
    Url,
    estimation_request,
)
from worker.cli.spec_options import with_options
from worker.cli.submission import Wait, submit_job
from worker.processes import threads

_OPTIONS = {
    option.flag.removeprefix("--"): option
    for option in ESTIMATION.options
    if option.field.pointer.startswith(("/model/", "/estimator/"))
}
_Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        file_okay=False,
        help="Folder that the files go to, where tables are files.",
        show_default="print only",
    ),
]
_NAME = "name"
# What identifiers of data sets, and of jobs, begin with.
_IDENTIFIER, _JOB = "dataset_", "job_"
# Of a difference as of an estimation.
_OF_BOTH = ("seed", "fdr")


def specification(text: str) -> JsonObject:
    """Return what a `--model` asks for; raises `typer.BadParameter`."""
    try:
        model, estimator, *options = text.split(":")
    except ValueError:
        raise typer.BadParameter(f"must begin with MODEL:ESTIMATOR, got {text!r}") from None
    given: dict[str, Any] = dict.fromkeys(option.name for option in ESTIMATION.options)
    name = None
    for flag, word in (("model", model), ("estimator", estimator), *map(_parted, options)):
        if flag == _NAME:
            name = word
        elif flag in _OPTIONS:
            try:
                given[_OPTIONS[flag].name] = _OPTIONS[flag].read(word)
            except typer.BadParameter as error:
                raise typer.BadParameter(f"{flag} {error.message}") from error
        else:
            raise typer.BadParameter(f"{flag} is no option of a model or an estimator")
    document = ESTIMATION.document(given)
    return {"name": name, "model": document["model"], "estimator": document["estimator"]}


def _parted(option: str) -> tuple[str, str]:
    flag, equals, value = option.partition("=")
    if not equals:
        raise typer.BadParameter(f"options are NAME=VALUE, got {option!r}")
    return flag.replace("_", "-"), value


@with_options(COMPARISON, READING)
def compare(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A file, or the identifier of a data set.")
    ],
    model: Annotated[
        list[Any],
        typer.Option(
            "--model",
            parser=specification,
            metavar="MODEL:ESTIMATOR[:OPTION=VALUE]…",
            help="A model, how it is fitted, and options as `vnce fit` has them, or `name`; "
            f"repeatable, 2 to {MOST_SPECIFICATIONS}.",
        ),
    ],
    out: _Out = None,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Compare models of one table by cross-validated log density, and show where edges differ.

    All models use the same folds. A file is read and compared here, on all cores; a data set by the
    service that has it.
    """
    reading, body = READING.document(given), COMPARISON.document(given)
    body["specifications"] = model
    file = Path(table)
    if not file.is_file():
        if reading or out is not None or not table.startswith(_IDENTIFIER):
            raise typer.BadParameter(
                f"{table} is no file; reading options and --out need one, and identifiers of data "
                f"sets begin with {_IDENTIFIER}"
            )
        body["dataset_id"] = table
        raise typer.Exit(submit_job(url, body, wait=wait, as_json=as_json))
    threads.limit(1)
    from worker.cli.local_comparison import compare_file  # noqa: PLC0415 - torch, which reads the limit at import

    limits = ReadLimits.from_settings(Settings.from_environment())
    raise typer.Exit(compare_file(file, out, reading, body, limits, as_json=as_json))


@with_options(DIFFERENCE, READING, ESTIMATION)
def difference(
    first: Annotated[
        str,
        typer.Argument(
            metavar="FIRST", help="A file, or an estimation that has succeeded, by its identifier."
        ),
    ],
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="[SECOND]",
            help="Another one, of another table; or, for estimations, give --by.",
            show_default=False,
        ),
    ] = None,
    out: _Out = None,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Test whether two networks differ, or those of two groups of one table's rows.

    Files of the same columns are read and fitted here, as by `vnce fit` with the same options, and
    compared on all cores; estimations are compared by the service that has them. Groups of the rows
    of one file are compared by `vnce fit --by`.
    """
    body = DIFFERENCE.document(given)
    texts = [text for text in (first, second) if text is not None]
    if not any(Path(text).is_file() for text in texts):
        _require_jobs(texts, out, given)
        body |= dict(zip(("job_id", "other_job_id"), texts, strict=False))
        raise typer.Exit(submit_job(url, body, wait=wait, as_json=as_json))
    if second is None or "by" in body:
        raise typer.BadParameter("groups of the rows of one file are compared by `vnce fit --by`")
    for text in texts:
        if not Path(text).is_file():
            raise typer.BadParameter(f"{text} is no file, and the other one is")
    threads.limit(1)
    from worker.cli.difference_of_files import difference_of_files  # noqa: PLC0415 - torch, which reads the limit at import

    limits = ReadLimits.from_settings(Settings.from_environment())
    done = difference_of_files(
        (Path(first), Path(second)),
        out,
        READING.document(given),
        estimation_request(LOCAL, given),
        body,
        limits,
        as_json=as_json,
    )
    raise typer.Exit(done)


def _require_jobs(texts: Sequence[str], out: Path | None, given: Mapping[str, Any]) -> None:
    """Raise `BadParameter` where a text is no job's identifier, or an option is of files only."""
    others = {name: None if name in _OF_BOTH else value for name, value in given.items()}
    needs_files = READING.document(others) or ESTIMATION.document(others).keys() - {"kind"}
    for text in texts:
        if needs_files or out is not None or not text.startswith(_JOB):
            raise typer.BadParameter(
                f"{text} is no file; reading and fitting options and --out need two, and "
                f"identifiers of jobs begin with {_JOB}"
            )
