"""Does the model fit the data set? Judged from its summary, all reasons at once.

What cannot be seen in a summary is left to the engine, whose refusal ends the job with the same
code.
"""

import math
from collections.abc import Iterator
from typing import assert_never

from service.datasets.schemas import ColumnSummary, DatasetSummary
from service.http.problems import ProblemItem
from service.jobs.specs.base import MIN_ROWS
from service.jobs.specs.comparators import (
    ContrastiveDivergenceEstimatorSpec,
    GaussianEmEstimatorSpec,
    GaussianScoreMatchingEstimatorSpec,
    MleEstimatorSpec,
    PseudoLikelihoodEstimatorSpec,
    ScoreMatchingEstimatorSpec,
)
from service.jobs.specs.contrastive import (
    ContrastiveSpec,
    NceEstimatorSpec,
    VnceEstimatorSpec,
)
from service.jobs.specs.estimation import EstimationSpec, EstimatorSpec
from service.jobs.specs.models import GaussianModelSpec
from service.jobs.vocabulary import (
    WHOLE_LINE_TRANSFORMS,
    CensoredRule,
    Filling,
    Imputation,
    LinearChoice,
    PenaltyChoice,
    PenaltyKind,
    Preset,
)

# Cells of all completed tables of a job: 200 MB as text.
MOST_DRAWN_CELLS = 10_000_000
# The comparators of model `gaussian`, which estimate no other.
_ON_THE_LINE = (GaussianEmEstimatorSpec, GaussianScoreMatchingEstimatorSpec)


def num_parameters(num_variables: int) -> int:
    """Return how many free numbers K, h and c hold."""
    return num_variables * (num_variables + 1) // 2 + num_variables + 1


def weakest_safe_penalty(kind: PenaltyKind) -> float:
    """Return the strength below which estimates would grow for ever: the engine's rule.

    That is so with as many parameters as rows.
    """
    return 0.001 if kind is PenaltyKind.L1 else 0.03


def least_observed(num_rows: int) -> int:
    """Return how many observed cells a variable needs by default: the engine's rule."""
    return min(max(10, math.ceil(num_rows / 50)), math.ceil(num_rows / 2))


def effective_penalty(estimator: ContrastiveSpec) -> PenaltyChoice | float | None:
    """Return the penalty that is meant: the paper's recipe has none to choose."""
    if estimator.penalty is PenaltyChoice.AUTO and is_paper(estimator):
        return None
    return estimator.penalty


def is_paper(estimator: EstimatorSpec | ContrastiveSpec) -> bool:
    """Return whether an estimator is to follow the paper's own recipe."""
    return isinstance(estimator, VnceEstimatorSpec) and estimator.preset is Preset.PAPER


def reasons_against(
    request: EstimationSpec, summary: DatasetSummary, columns: list[ColumnSummary]
) -> list[ProblemItem]:
    """Return every reason why `request` cannot run on the chosen `columns`; empty if it can."""
    found = [*_of_the_table(request, summary, columns)]
    least = request.min_observed or least_observed(summary.n_rows - summary.n_empty_rows)
    for column in columns:
        found.extend(_of_the_column(request, column, least))
    return found


def _of_the_table(
    request: EstimationSpec, summary: DatasetSummary, columns: list[ColumnSummary]
) -> Iterator[ProblemItem]:
    width = len(columns)
    rows = summary.n_rows - summary.n_empty_rows
    if width < 2:
        yield ProblemItem(
            message=f"A network needs at least 2 variables, got {width}.", pointer="/variables"
        )
    if rows < MIN_ROWS:
        yield ProblemItem(
            message=f"At least {MIN_ROWS} rows with something observed are needed, got {rows}.",
            pointer="/dataset_id",
        )
    num_drawn = (request.imputations or 0) * summary.n_rows * width
    if num_drawn > MOST_DRAWN_CELLS:
        yield ProblemItem(
            message=f"{request.imputations} completed tables have {num_drawn} cells, and at most "
            f"{MOST_DRAWN_CELLS} are written. Ask for fewer, or use fewer variables.",
            pointer="/imputations",
        )
    yield from _of_the_pair(request)
    estimator = request.estimator
    if isinstance(estimator, ContrastiveSpec):
        yield from _of_the_penalty(estimator, width, rows)
    else:
        yield from _of_few_rows(request, width, rows)
    match request.estimator:
        case NceEstimatorSpec(imputation=Imputation.DROP):
            if width == summary.n_columns and summary.n_complete_rows < MIN_ROWS:
                yield ProblemItem(
                    message=f"Complete rows: {summary.n_complete_rows}, and at least {MIN_ROWS} "
                    'are needed: "drop" leaves out every other. Use another imputation, or fewer '
                    "variables.",
                    pointer="/estimator/imputation",
                )
        case (
            PseudoLikelihoodEstimatorSpec(imputation=Filling.DROP)
            | ScoreMatchingEstimatorSpec(imputation=Filling.DROP)
        ):
            if width == summary.n_columns and summary.n_complete_rows <= width:
                yield ProblemItem(
                    message=f"Complete rows: {summary.n_complete_rows}, and more than {width} "
                    'are needed: "drop" leaves out every other. Use another imputation, or fewer '
                    "variables.",
                    pointer="/estimator/imputation",
                )
        case (
            NceEstimatorSpec()
            | VnceEstimatorSpec()
            | MleEstimatorSpec()
            | ContrastiveDivergenceEstimatorSpec()
            | PseudoLikelihoodEstimatorSpec()
            | ScoreMatchingEstimatorSpec()
            | GaussianEmEstimatorSpec()
            | GaussianScoreMatchingEstimatorSpec()
        ):
            pass
        case _ as unknown:
            assert_never(unknown)


def _of_the_pair(request: EstimationSpec) -> Iterator[ProblemItem]:
    """Yield what stands between the model and the estimator."""
    is_gaussian = isinstance(request.model, GaussianModelSpec)
    if is_gaussian and isinstance(request.estimator, ContrastiveSpec):
        yield from _beyond_gaussian(request.estimator)
    elif is_gaussian and not isinstance(request.estimator, _ON_THE_LINE):
        yield ProblemItem(
            message='Model "gaussian" is estimated by "vnce", "nce", "gaussian-em" or '
            f'"gaussian-score-matching", not by "{request.estimator.kind}".',
            pointer="/estimator/kind",
        )
    if not is_gaussian and isinstance(request.estimator, _ON_THE_LINE):
        yield ProblemItem(
            message=f'Estimator "{request.estimator.kind}" estimates model "gaussian", not '
            f'"{request.model.kind}".',
            pointer="/model/kind",
        )


def _beyond_gaussian(estimator: ContrastiveSpec) -> Iterator[ProblemItem]:
    """Yield the choices that contrastive estimators do not offer for model "gaussian"."""
    if is_paper(estimator):
        yield ProblemItem(
            message='Model "gaussian" has no preset but "default".', pointer="/estimator/preset"
        )
    if isinstance(estimator, NceEstimatorSpec) and estimator.imputation is Imputation.NOISE:
        yield ProblemItem(
            message='Model "gaussian" takes "mean", "zero" or "drop".',
            pointer="/estimator/imputation",
        )


def _of_the_penalty(estimator: ContrastiveSpec, width: int, rows: int) -> Iterator[ProblemItem]:
    """Yield the penalty that would let data and noise be told apart with certainty."""
    if num_parameters(width) < rows:
        return
    weakest = weakest_safe_penalty(estimator.penalty_kind)
    unbounded = (
        f"With {num_parameters(width)} parameters and {rows} rows the estimates would be unbounded"
    )
    penalty = effective_penalty(estimator)
    if penalty is PenaltyChoice.AUTO:
        for position, strength in enumerate(estimator.penalties or []):
            if strength < weakest:
                yield ProblemItem(
                    message=f"{unbounded} under so weak a penalty: choose from strengths of at "
                    f"least {weakest}, or use fewer variables.",
                    pointer=f"/estimator/penalties/{position}",
                )
    elif penalty is None or penalty < weakest:
        auto = "" if is_paper(estimator) else ', or to "auto"'
        yield ProblemItem(
            message=f"{unbounded}: set `penalty` to at least {weakest}{auto}, or use fewer "
            "variables.",
            pointer="/estimator/penalty",
        )


def _of_few_rows(request: EstimationSpec, width: int, rows: int) -> Iterator[ProblemItem]:
    """Yield that a comparator needs a penalty; whether one is too weak the engine says."""
    estimator, model = request.estimator, request.model
    assert not isinstance(estimator, ContrastiveSpec)
    has_mean = model.linear is LinearChoice.FREE
    if rows >= width + has_mean or estimator.penalty is not None:
        return
    if isinstance(estimator, GaussianEmEstimatorSpec):
        helps = 'set `penalty` to "ebic", "cv" or a number'
    elif isinstance(estimator, GaussianScoreMatchingEstimatorSpec):
        helps = 'set `penalty` to "cv" or 1'
    elif isinstance(estimator, ScoreMatchingEstimatorSpec):
        helps = 'set `penalty=1` and `penalty_kind="ridge"`'
    else:
        helps = "set `penalty` to 1"
    yield ProblemItem(
        message=f"With {width} variables and {rows} rows the estimates would be unbounded: "
        f"{helps}, or use fewer variables.",
        pointer="/estimator/penalty",
    )


def _of_the_column(
    request: EstimationSpec, column: ColumnSummary, min_observed: int
) -> Iterator[ProblemItem]:
    if column.n_observed == 0:
        yield ProblemItem(
            message="No cell holds a number; leave the variable out.", column=column.name
        )
        return
    if column.n_observed < min_observed:
        yield ProblemItem(
            message=f"Fewer than {min_observed} cells hold a number; leave the variable out, or "
            "set `min_observed`.",
            column=column.name,
            pointer="/min_observed",
            count=column.n_observed,
        )
    if column.is_constant:
        yield ProblemItem(
            message="All observed values are the same; leave the variable out.",
            column=column.name,
        )
    if column.n_negative > 0 and request.model.may_be_negative:
        if request.model.transform not in WHOLE_LINE_TRANSFORMS:
            yield ProblemItem(
                message=f"The transform {request.model.transform} takes no negative values.",
                column=column.name,
                pointer="/model/transform",
                count=column.n_negative,
            )
    elif column.n_negative > 0:
        yield ProblemItem(
            message="Negative values are outside the model's support [0, ∞); if they stand for "
            "missing cells, upload again with `na_values`, else leave the variable out, or use "
            'model "gaussian".',
            column=column.name,
            count=column.n_negative,
        )
    yield from refused_limits(request.censored, column)
    if is_paper(request.estimator) and column.n_zeros > 0:
        yield ProblemItem(
            message='Exact zeros are impossible under the log-normal family of preset "paper"; '
            'use preset "default".',
            column=column.name,
            count=column.n_zeros,
        )


def refused_limits(censored: CensoredRule, column: ColumnSummary) -> Iterator[ProblemItem]:
    """Yield the cells that hold a limit, where they are to be refused."""
    num_limits = column.n_censored + column.n_unknown
    if num_limits > 0 and censored is CensoredRule.REFUSE:
        yield ProblemItem(
            message="Cells hold a limit such as <0.5 or ND and no number, which no model uses "
            'yet. Set `censored="missing"` to treat them as missing, which biases the estimates; '
            "the result will say so.",
            column=column.name,
            count=num_limits,
        )
