"""The command that repeats an estimation, by the names that fields have as options."""

import shlex
from collections.abc import Collection, Iterator

from pydantic import BaseModel

from service.datasets.readers.tokens import MISSING_TEXTS
from service.datasets.schemas import DatasetSummary
from service.datasets.vocabulary import ChangeCode, TokenKind
from service.jobs.specs.base import planned
from service.jobs.specs.estimation import EstimationSpec

# The arguments of `vnce fit` that make `reading` of a file and `spec` of a job.
_ELSEWHERE = ("dataset_id", "tag", "variables", "model", "estimator", "seed")


def repeating_command(spec: EstimationSpec, file_name: str, summary: DatasetSummary | None) -> str:
    """Return the `vnce fit` that repeats an estimation on the file that was uploaded.

    `summary` says how it was read; None where that is not known.
    """
    arguments = ["vnce", "fit", file_name]
    columns = None if summary is None else [column.name for column in summary.columns]
    if summary is not None:
        arguments += _reading(summary)
    if spec.variables != columns:
        arguments += [part for name in planned(spec.variables) for part in ("--variable", name)]
    arguments += ["--model", spec.model.kind, *_options(spec.model)]
    arguments += ["--estimator", spec.estimator.kind, *_options(spec.estimator)]
    arguments += [*_options(spec, _ELSEWHERE), "--seed", str(planned(spec.seed)), "--out", "result"]
    return shlex.join(arguments)


def _reading(summary: DatasetSummary) -> Iterator[str]:
    """Yield what was said about a file where it was not found out."""
    skipped = {change.code: change.count for change in summary.changes}
    if (dialect := summary.csv_dialect) is not None:
        if not dialect.delimiter_detected:
            yield from ("--delimiter", dialect.delimiter)
        if not dialect.decimal_detected:
            yield from ("--decimal", dialect.decimal)
        if ChangeCode.LINES_SKIPPED in skipped:
            yield from ("--skip-rows", str(skipped[ChangeCode.LINES_SKIPPED]))
        if ChangeCode.UNITS_ROW_SKIPPED in skipped:
            yield "--units-row"
    if summary.encoding is not None and not summary.encoding_detected:
        yield from ("--encoding", summary.encoding)
    tokens = (token for column in summary.columns for token in column.tokens)
    missing = (token.text for token in tokens if token.kind is TokenKind.MISSING)
    for text in dict.fromkeys(text for text in missing if text.lower() not in MISSING_TEXTS):
        yield from ("--na-value", text)


def _options(model: BaseModel, without: Collection[str] = ("kind",)) -> Iterator[str]:
    """Yield the options of what differs from its default."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if name in ("kind", *without) or value == field.get_default(call_default_factory=True):
            continue
        yield f"--{name.replace('_', '-')}"
        match value:
            case True:
                pass
            case None:
                yield "none"
            case list():
                yield ",".join(map(str, value))
            case _:
                yield str(value).lower() if value is False else str(value)
