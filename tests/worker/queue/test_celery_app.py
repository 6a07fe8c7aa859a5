import subprocess
import sys

import pytest

from worker.queue.celery_app import create_celery
from worker.settings import WorkerSettings


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("redis://broker:6379/0", "redis://broker:6379/0"),
        ("rediss://broker:6379/0", "rediss://broker:6379/0"),
        ("unix:///run/valkey.sock", "redis+socket:///run/valkey.sock"),
    ],
)
def test_the_broker_is_named_in_celerys_spelling(given: str, used: str) -> None:
    assert create_celery(WorkerSettings(broker_url=given)).conf.broker_url == used


def test_two_applications_share_no_settings() -> None:
    one, two = (create_celery(WorkerSettings(concurrency=number)) for number in (1, 2))
    assert (one.conf.worker_concurrency, two.conf.worker_concurrency) == (1, 2)


@pytest.mark.slow
def test_what_only_carries_messages_loads_no_numerical_library() -> None:
    code = (
        "import sys, worker.dispatcher, worker.embedded.running, worker.processes.health\n"
        "print(*{'numpy', 'torch', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == []


@pytest.mark.slow
def test_a_worker_limits_the_numerical_libraries_before_they_are_loaded() -> None:
    code = (
        "import os, sys; os.environ['VNCE_THREADS_PER_PROCESS'] = '1'\n"
        "for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'): os.environ.pop(name, None)\n"
        "import worker.__main__, torch, threadpoolctl\n"
        "pools = threadpoolctl.threadpool_info()\n"
        "print(torch.get_num_threads(), *{pool['num_threads'] for pool in pools})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert set(done.stdout.split()) == {"1"}
