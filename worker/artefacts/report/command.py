"""The command that repeats an estimation, by the names that fields have as options."""

import shlex
from collections.abc import Collection, Iterator, Sequence, Set

from pydantic import BaseModel

from service.datasets.readers.tokens import MISSING_TEXTS
from service.datasets.schemas import DatasetSummary
from service.datasets.vocabulary import ChangeCode, TokenKind
from service.jobs.specs.base import planned
from service.jobs.specs.estimation import EstimationSpec
from service.results.base import ResultModel
from service.results.bootstrap_result import BootstrapResult
from service.results.difference_result import DifferenceResult

# The arguments of `vnce fit` that make `reading` of a file and `spec` of a job.
_ELSEWHERE = ("dataset_id", "tag", "variables", "model", "estimator", "seed")


def repeating_command(
    spec: EstimationSpec,
    file_name: str,
    summary: DatasetSummary | None,
    others: Sequence[ResultModel] = (),
) -> str:
    """Return the `vnce fit` that repeats an estimation on the file that was uploaded.

    `summary` says how it was read; None where that is not known. `others` are documents of what the
    same command did with the network.
    """
    arguments = ["vnce", "fit", file_name]
    by = {other.by for other in others if isinstance(other, DifferenceResult)}
    aside = by | {spec.cluster}
    columns = None if summary is None else [c.name for c in summary.columns if c.name not in aside]
    if summary is not None:
        arguments += _reading(summary, aside)
    if spec.variables != columns:
        arguments += [part for name in planned(spec.variables) for part in ("--variable", name)]
    arguments += ["--model", spec.model.kind, *_options(spec.model)]
    arguments += ["--estimator", spec.estimator.kind, *_options(spec.estimator)]
    for other in others:
        arguments += _of_other(other)
    arguments += [*_options(spec, _ELSEWHERE), "--seed", str(planned(spec.seed)), "--out", "result"]
    return shlex.join(arguments)


def _reading(summary: DatasetSummary, aside: Set[str | None]) -> Iterator[str]:
    """Yield what was said about a file where it was not found out.

    The columns of clusters and of groups, `aside`, are read as labels without a word.
    """
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
    for change in summary.changes:
        if change.code is ChangeCode.LABELS_NUMBERED:
            for name in change.columns:
                yield from () if name in aside else ("--label", name)
    tokens = (token for column in summary.columns for token in column.tokens)
    missing = (token.text for token in tokens if token.kind is TokenKind.MISSING)
    for text in dict.fromkeys(text for text in missing if text.lower() not in MISSING_TEXTS):
        yield from ("--na-value", text)


def _of_other(document: ResultModel) -> Iterator[str]:
    match document:
        case BootstrapResult(n_requested=number, stability=stability):
            yield from ("--resamples", str(number))
            if stability is not None:
                yield from ("--subsets", str(sum(stability.n_requested)))
        case DifferenceResult(by=str(by), n_permutations=number):
            yield from ("--by", by, "--permutations", str(number))


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
