"""CPU seconds and memory of one fit, measured in a process of its own.

Memory is the peak of the process during the fit above what it held before: interpreter, libraries
and the table itself. It is read from Linux's /proc; elsewhere it is not known.
"""

import gc
import multiprocessing
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Usage:
    """What a fit took."""

    seconds: float
    """CPU time."""
    megabytes: float | None
    """Peak memory above that before the fit, in 10^6 bytes; None where it is not known."""
    status: str


def measure_apart(make: Callable[[], Any], X: FloatArray) -> Usage:
    """Fit the estimator that `make` returns to X (n, d) in a new process; `make` is importable."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (make, X))


def _measure(make: Callable[[], Any], X: FloatArray) -> Usage:
    torch.set_num_threads(1)
    estimator = make()
    gc.collect()
    before = _memory("VmRSS")
    start = time.process_time()
    estimator.fit(X)
    seconds = time.process_time() - start
    peak = _memory("VmHWM")
    megabytes = None if before is None or peak is None else (peak - before) / 1e6
    return Usage(seconds, megabytes, str(estimator.status_))


def _memory(name: str) -> float | None:
    """Return a figure of the process's memory in bytes."""
    if not _STATUS.exists():
        return None
    line = re.search(rf"^{name}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    return None if line is None else 1024.0 * int(line[1])
