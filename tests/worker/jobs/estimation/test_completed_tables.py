"""Completed tables among the files of an estimation."""

from io import BytesIO

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.worker.jobs.estimation.runs import MakeRequest, files_of, ignore
from worker.artefacts.fitted import to_array
from worker.jobs.estimation import estimate


@pytest.mark.slow
def test_as_many_completed_tables_as_were_asked_for_keep_what_was_observed(
    make_request: MakeRequest, small_table: pa.Table
) -> None:
    outcome = estimate(make_request(imputations=3), ignore)
    frame = parquet.read_table(BytesIO(files_of(outcome)["imputations-m.parquet"]))
    X = to_array(small_table)
    tables = to_array(frame.select(small_table.column_names)).reshape(3, *X.shape)
    observed = ~np.isnan(X)
    assert (tables[:, observed] == X[observed]).all()
    assert np.isfinite(tables).all()
    assert (tables[0] != tables[1])[~observed].all()
    codes = {warning.code for warning in outcome.document.warnings}
    assert not codes & {"imputations-too-alike", "imputations-not-drawn"}
    again = estimate(make_request(imputations=3), ignore)
    assert files_of(again)["imputations-m.csv"] == files_of(outcome)["imputations-m.csv"]


@pytest.mark.slow
def test_a_result_says_why_completed_tables_are_too_alike_or_not_there(
    make_request: MakeRequest,
) -> None:
    """Comparators do not know how uncertain K is, and an indefinite K has no distribution."""
    codes = {}
    for kind, rows in (("mle", 80), ("score-matching", 30)):
        rng = np.random.default_rng(4)
        X = rng.exponential(size=(rows, 4))
        if kind == "score-matching":
            X[:, 1] = X[:, 0] * rng.exponential(size=rows)
        X[0, 0] = np.nan
        table = pa.table([pa.array(column, from_pandas=True) for column in X.T], list("abcd"))
        outcome = estimate(make_request(table, estimator={"kind": kind}, imputations=2), ignore)
        codes[kind] = {warning.code for warning in outcome.document.warnings}
        assert ("imputations-m.csv" in files_of(outcome)) is (kind == "mle")
    assert "imputations-too-alike" in codes["mle"]
    assert "imputations-not-drawn" in codes["score-matching"]
