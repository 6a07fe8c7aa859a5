"""Tables to upload and jobs to submit."""

import io
from typing import Any

import numpy as np

from worker.cli.client import Client

Json = dict[str, Any]

# What takes a moment, so that what is around it is measured.
SHORT_JOB: Json = {
    "kind": "simulation",
    "graph": "ring",
    "n_variables": 3,
    "n_rows": 10,
    "seed": 1,
}


def upload(client: Client, num_rows: int, num_columns: int) -> str:
    """Upload positive numbers as CSV; return the data set's id."""
    rng = np.random.default_rng(20260103)
    table = np.abs(rng.normal(size=(num_rows, num_columns)))
    text = io.StringIO()
    header = ",".join(f"v{position}" for position in range(num_columns))
    np.savetxt(text, table, delimiter=",", fmt="%.6g", header=header, comments="")
    made = client.upload_dataset(text.getvalue().encode(), {"format": "csv"}, preview=False)
    return str(made["id"])


def estimation(dataset_id: str, **estimator: Any) -> Json:
    """Return a job that fits a network by VNCE under a fixed penalty, unless told otherwise."""
    choices = {"kind": "vnce", "penalty": 1.0} | estimator
    return {"kind": "estimation", "dataset_id": dataset_id, "estimator": choices, "seed": 1}


def long_estimation(dataset_id: str) -> Json:
    """Return a job that outlasts any measurement beside it."""
    return estimation(dataset_id, noise_ratio=100, max_iter=1000, tol=1e-12)
