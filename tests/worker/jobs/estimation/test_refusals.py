"""What fails an estimation: columns, limits, an objective without end."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from service.datasets.readers.cells import CELL_SCHEMA
from service.datasets.schemas import DatasetWarning
from service.datasets.vocabulary import WarningCode
from service.http.problems import ProblemCode
from tests.worker.jobs.estimation.runs import MakeRequest, ignore
from vnce_engine.runtime.checkpoint import Checkpoint
from worker.jobs.estimation import (
    EstimationRequest,
    JobFailedError,
    estimate,
)


def failure(request: EstimationRequest) -> JobFailedError:
    with pytest.raises(JobFailedError) as caught:
        estimate(request, ignore)
    return caught.value


def test_what_the_engine_refuses_fails_the_job_and_names_the_column(
    make_request: MakeRequest, small_table: pa.Table
) -> None:
    negative = pa.array(np.where(np.arange(120) == 7, -1.0, 1.0) * np.arange(120))
    table = small_table.set_column(3, "depth", negative)
    problem = failure(make_request(table=table)).problem
    assert problem.code is ProblemCode.INCOMPATIBLE_MODEL
    assert "depth" in problem.detail


class NeverFinite:
    """Stands for an estimator whose objective overflows: no table is known that makes one do so."""

    status_ = "non_finite"
    objective_path_ = (-3.5, -2.25, float("nan"))
    n_iter_ = 3
    message_ = "Try a stronger `penalty`."
    warnings_ = ()

    def fit(self, table: pa.Table, on_step: object, checkpoint: Checkpoint, clusters: None) -> None:
        pass


def test_an_objective_that_is_not_finite_fails_the_job_and_says_where(
    make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.jobs.estimation.build_estimator", lambda spec: NeverFinite())
    problem = failure(make_request()).problem
    assert problem.code is ProblemCode.NON_FINITE_OBJECTIVE
    assert "iteration 3" in problem.detail
    assert "-2.25" in problem.detail
    assert "Try a stronger" in problem.detail


CENSORED = pa.table(
    [[3, 4, 9], ["a", "=c", "a"], ["<0.5", "ND", "<0.5"], [0.0, None, 0.0], [0.5, None, 0.5]],
    schema=CELL_SCHEMA,
)


def test_cells_with_a_limit_are_refused_with_their_counts(make_request: MakeRequest) -> None:
    problem = failure(make_request(cells=CENSORED)).problem
    assert problem.code is ProblemCode.INCOMPATIBLE_MODEL
    assert {(item.column, item.count) for item in problem.errors} == {("a", 2), ("=c", 1)}


@pytest.mark.slow
def test_cells_with_a_limit_taken_for_missing_leave_a_warning(make_request: MakeRequest) -> None:
    document = estimate(make_request(cells=CENSORED, censored="missing"), ignore).document
    assert document.counts.n_censored == 3
    warning = document.warnings[0]
    assert (warning.code, warning.columns) == ("censored-as-missing", ["a", "=c"])
    assert "2 in a, 1 in =c" in warning.message


@pytest.mark.slow
def test_limits_in_unused_columns_do_not_matter(make_request: MakeRequest) -> None:
    document = estimate(make_request(cells=CENSORED, variables=["体重", "d d"]), ignore).document
    assert document.counts.n_censored == 0
    assert all(warning.code != "censored-as-missing" for warning in document.warnings)


def test_columns_that_may_be_behind_an_objective_without_end_are_named(
    make_request: MakeRequest,
) -> None:
    rng = np.random.default_rng(1)
    parts = rng.normal(size=(50, 3))
    table = pa.table([*parts.T, parts.sum(axis=1)], ["a", "b", "c", "total"])
    odd = [
        DatasetWarning(code=code, message=f"{code} it is", columns=columns, rows=[])
        for code, columns in (
            (WarningCode.OUTLIERS, ["b"]),
            (WarningCode.OUTLIERS, ["a column that is not used"]),
            (WarningCode.COUNTS, ["a"]),
        )
    ]
    choices = {"model": {"kind": "gaussian"}, "estimator": {"kind": "gaussian-em"}}
    request = replace(make_request(table, **choices), table_warnings=odd)
    problem = failure(request).problem
    assert problem.code is ProblemCode.NON_FINITE_OBJECTIVE
    (outliers, *dependent) = problem.errors
    assert (outliers.column, outliers.message) == ("b", "outliers it is")
    assert [item.column for item in dependent] == ["a", "b", "c", "total"]
    assert {"total of a, b, c" in item.message for item in dependent} == {True}
