from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from service.datasets.readers.cells import CELL_SCHEMA
from service.jobs.specs.estimation import EstimationSpec
from service.results.schemas import DatasetIdentity
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)
from worker.jobs.estimation import EstimationRequest

MakeRequest = Callable[..., EstimationRequest]


@pytest.fixture(scope="session")
def small_table() -> pa.Table:
    """120 rows of a ring of 4 variables with odd names, a fifth of the cells null."""
    rng = np.random.default_rng(0)
    X = sample_truncated_gaussian(ring_precision(4, rng), 120, rng)
    masked = mask_completely_at_random(X, 0.2, rng)
    names = ["a", "体重", "=c", "d d"]
    return pa.table([pa.array(column, from_pandas=True) for column in masked.T], names)


@pytest.fixture(scope="session")
def make_request(small_table: pa.Table) -> MakeRequest:
    """Return a function that makes a request on `small_table`, quick unless told otherwise."""

    def make(
        table: pa.Table | None = None,
        ground_truth: list[list[str]] | None = None,
        cells: pa.Table | None = None,
        **spec: Any,
    ) -> EstimationRequest:
        table = small_table if table is None else table
        quick: dict[str, Any] = {
            "kind": "estimation",
            "dataset_id": "dataset_1",
            "model": {"kind": "truncated-gaussian", "linear": "zero"},
            "estimator": {"kind": "vnce", "penalty": 1.0},
        }
        job = EstimationSpec.model_validate(quick | spec)
        names = job.variables or table.column_names
        return EstimationRequest(
            table_warnings=[],
            spec=job.model_copy(update={"variables": names, "seed": job.seed or 0}),
            table=table,
            texts=None,
            censored=CELL_SCHEMA.empty_table() if cells is None else cells,
            ground_truth=ground_truth,
            dataset=DatasetIdentity(id="dataset_1", name="small.csv", sha256="0" * 64),
        )

    return make
