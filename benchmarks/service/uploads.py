"""How long others wait while a large body arrives, is read and stored."""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import numpy as np

from benchmarks.service.figures import Figure
from benchmarks.service.stack import on_sqlite
from service.datasets.graph_documents import MOST_EDGES

POLL_SECONDS = 0.1
MOST_MILLISECONDS = 500
NUM_COLUMNS = 50
UPLOAD_BYTES = 100 * 10**6
NUM_TRUTH_COLUMNS = 2000
# A true graph is read in little time, and few polls fall into it.
NUM_TRUTHS = 10
PATHS = ("/livez", "/v1/jobs", "/v1/datasets")
Send = Callable[[httpx.Client], httpx.Response]


def measure() -> Iterator[Figure]:
    """Send a table of 100 MB, then large true graphs, and poll meanwhile."""
    with on_sqlite() as stack:
        url = stack.start_api()
        table = _table(UPLOAD_BYTES)
        yield from _beside(url, f"upload of {len(table) / 1e6:.0f} MB", [_upload(table)])
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            header = ",".join(_names())
            made = client.post("/v1/datasets", content=f"{header}\n{_row(5)}\n{_row(7)}\n")
            dataset_id = made.raise_for_status().json()["id"]
        graph = _put(f"/v1/datasets/{dataset_id}/ground-truth", _edges())
        yield from _beside(url, f"true graph of {MOST_EDGES} edges", [graph] * NUM_TRUTHS)


def _beside(url: str, section: str, sends: list[Send]) -> Iterator[Figure]:
    """Send one after the other and poll three addresses ten times a second meanwhile."""
    times = []
    began = time.perf_counter()

    def work() -> None:
        with httpx.Client(base_url=url, trust_env=False, timeout=300) as client:
            for send in sends:
                send(client).raise_for_status()

    sending = threading.Thread(target=work)
    sending.start()
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        while sending.is_alive():
            for path in PATHS:
                asked = time.perf_counter()
                client.get(path).raise_for_status()
                times.append(1e3 * (time.perf_counter() - asked))
            time.sleep(POLL_SECONDS)
    sending.join()
    seconds = time.perf_counter() - began
    yield Figure(section, "answered after", seconds / len(sends), "s")
    yield Figure(section, f"{len(times)} polls beside it: median", float(np.median(times)), "ms")
    slowest = float(np.quantile(times, 0.99))
    yield Figure(section, "99 of 100 within", slowest, "ms", f"<= {MOST_MILLISECONDS}")


def _upload(table: bytes) -> Send:
    return lambda client: client.post("/v1/datasets?format=csv", content=table)


def _put(path: str, body: bytes) -> Send:
    headers = {"Content-Type": "application/json"}
    return lambda client: client.put(path, content=body, headers=headers)


def _table(num_bytes: int) -> bytes:
    """Return a CSV of about so many bytes: a block of a thousand rows, again and again."""
    rng = np.random.default_rng(20260104)
    rows = rng.lognormal(size=(1000, NUM_COLUMNS))
    block = "".join(",".join(f"{value:.9g}" for value in row) + "\n" for row in rows).encode()
    header = ",".join(f"v{position}" for position in range(NUM_COLUMNS)).encode() + b"\n"
    return header + block * (num_bytes // len(block))


def _names() -> list[str]:
    return [f"v{position}" for position in range(NUM_TRUTH_COLUMNS)]


def _row(period: int) -> str:
    return ",".join(str(position % period) for position in range(NUM_TRUTH_COLUMNS))


def _edges() -> bytes:
    pairs = itertools.islice(itertools.combinations(_names(), 2), MOST_EDGES)
    edges = [{"source": one, "target": other} for one, other in pairs]
    return json.dumps({"kind": "edges", "edges": edges}).encode()
