"""Parts of a job that processes of this machine share, one a core; they end with this one."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeVar

Request = TypeVar("Request")
Done = TypeVar("Done")


def in_processes(run: Callable[[Request], Done], requests: Sequence[Request]) -> Iterator[Done]:
    """Yield what `run`, a function of a module, makes of each request, in order."""
    pool = ProcessPoolExecutor(
        max_workers=min(len(requests), multiprocessing.cpu_count()),
        mp_context=multiprocessing.get_context("spawn"),
        # Ctrl-C is for this process to hear, which ends them.
        initializer=partial(signal.signal, signal.SIGINT, signal.SIG_IGN),
    )
    try:
        yield from pool.map(run, requests)
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
