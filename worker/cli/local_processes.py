"""Parts of a job that processes of this machine share, one a core; they end with this one."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from threading import Thread
from typing import TypeVar

Request = TypeVar("Request")
Done = TypeVar("Done")

# On Linux forked from one that has loaded what takes seconds to load; elsewhere libraries may not
# outlive a fork.
_CONTEXT = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
_CONTEXT.set_forkserver_preload(["worker.jobs.estimation"])


def in_processes(run: Callable[[Request], Done], requests: Sequence[Request]) -> Iterator[Done]:
    """Yield what `run`, a function of a module, makes of each request, in order."""
    if not requests:
        return
    pool = ProcessPoolExecutor(
        max_workers=min(len(requests), multiprocessing.cpu_count()),
        mp_context=_CONTEXT,
        initializer=_end_with_parent,
    )
    try:
        yield from pool.map(run, requests)
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Leave Ctrl-C for the process to hear that started this one, and end when that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
