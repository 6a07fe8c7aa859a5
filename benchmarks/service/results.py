"""How fast parts of a wide result are answered: 500 variables, 124,750 pairs."""

import time
from collections.abc import Iterator

import httpx
import numpy as np

from benchmarks.service.figures import Figure
from benchmarks.service.stack import on_sqlite, wait_for
from benchmarks.service.tables import Json, upload

NUM_VARIABLES = 500
REPEATS = 10
MOST_MILLISECONDS = 300
PARTS = {
    "job": "",
    "result document": "/result",
    "first page of the graph": "/result/graph",
    "page at rank 120,000": "/result/graph?cursor=120000",
    "page of the selected pairs": "/result/graph?selected=true",
    "page of the strong pairs": "/result/graph?min_abs_weight=0.05",
    "precision as JSON": "/result/precision",
    "precision as npy": "/result/files/precision.npy",
    "graph as GraphML": "/result/files/graph.graphml",
}


def measure() -> Iterator[Figure]:
    """Have a wide network estimated and yield the time of the answer of each part."""
    section = f"result of {NUM_VARIABLES} variables"
    with on_sqlite() as stack:
        url = stack.start_api()
        stack.start_worker("worker")
        stack.start_dispatcher()
        client = stack.client()
        job: Json = {
            "kind": "estimation",
            "dataset_id": upload(client, 2 * NUM_VARIABLES, NUM_VARIABLES),
            "model": {"kind": "gaussian"},
            # The quickest way to an estimate; what it is does not matter here.
            "estimator": {"kind": "gaussian-em", "penalty": None},
        }
        job_id = client.submit(job)["id"]
        wait_for(lambda: client.job(job_id)["state"] == "succeeded", "the estimate", pause=0.5)
        stack.stop("worker", "dispatcher")
        for name, path in PARTS.items():
            times, size = _times(f"{url}/v1/jobs/{job_id}{path}")
            yield Figure(section, f"{name}, {size / 1e6:.2f} MB: median", np.median(times), "ms")
            target = f"<= {MOST_MILLISECONDS}"
            yield Figure(section, f"{name}: slowest of {REPEATS}", max(times), "ms", target)


def _times(url: str) -> tuple[list[float], int]:
    """Return the milliseconds until the last byte, of each repetition, and the bytes."""
    times = []
    with httpx.Client(trust_env=False, timeout=60) as client:
        for _ in range(REPEATS):
            began = time.perf_counter()
            answer = client.get(url).raise_for_status()
            times.append(1e3 * (time.perf_counter() - began))
    return times, len(answer.content)
