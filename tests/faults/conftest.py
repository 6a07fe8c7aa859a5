"""Stacks and jobs for tests of what becomes of jobs when something fails."""

import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from redis import Redis

from service.db import schema
from tests.embedded_postgres import free_port
from tests.faults.stack import Broker, Json, Stack


@pytest.fixture(scope="package")
def session_broker() -> Iterator[Broker]:
    """Yield the broker of this session."""
    # Not pytest's folder: the name of a socket is at most about 100 characters long.
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder), free_port())
        yield broker
        broker.kill()


@pytest.fixture
def broker(session_broker: Broker) -> Iterator[Broker]:
    """Yield a broker that a test may stop and freeze."""
    yield session_broker
    if not session_broker.answers():
        session_broker.start()


@pytest.fixture
def postgres(own_postgres: Any) -> Iterator[Any]:
    """Yield a PostgreSQL server that a test may stop."""
    yield own_postgres
    if not own_postgres.is_running:
        own_postgres.start()


@pytest.fixture(scope="package")
def session_stack(
    own_postgres: Any, session_broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Yield the stack of this session: two workers, so that one can do the other's work."""
    schema.upgrade(own_postgres.url)
    folder = tmp_path_factory.mktemp("stack")
    with closing(Stack(folder, own_postgres.url, session_broker.url)) as stack:
        stack.start_worker("worker-1")
        stack.start_worker("worker-2")
        stack.start_dispatcher()
        stack.start_api()
        yield stack


@pytest.fixture
def stack(session_stack: Stack, broker: Broker, postgres: Any) -> Iterator[Stack]:
    """Yield a whole stack; what a test has stopped is started again, and its jobs are cancelled."""
    standard = list(session_stack.processes)
    session_stack.wait_until_ready()
    yield session_stack
    if not broker.answers():
        broker.start()
    if not postgres.is_running:
        postgres.start()
    session_stack.keep_only(standard)
    session_stack.wait_until_ready()
    session_stack.cancel_all()


@pytest.fixture
def make_stack(broker: Broker, tmp_path: Path) -> Iterator[Callable[[str], Stack]]:
    """Yield a function that makes a stack, without processes, on a migrated database."""
    with ExitStack() as opened, Redis.from_url(broker.other_url) as client:
        client.flushdb()

        def make(database_url: str) -> Stack:
            return opened.enter_context(closing(Stack(tmp_path, database_url, broker.other_url)))

        yield make


def upload(stack: Stack, table: np.ndarray) -> str:
    columns = [pa.array(column, from_pandas=True) for column in table.T]
    content = io.BytesIO()
    parquet.write_table(pa.table(columns, [f"v{i}" for i in range(len(columns))]), content)
    made = stack.client.upload_dataset(content.getvalue(), {"format": "parquet"}, preview=False)
    return str(made["id"])


def draw_table(num_rows: int, num_columns: int) -> np.ndarray:
    rng = np.random.default_rng(20260102)
    mixing = rng.normal(size=(num_columns, num_columns))
    return np.abs(rng.normal(size=(num_rows, num_columns)) @ mixing)


@pytest.fixture(scope="package")
def long_fit(session_stack: Stack) -> Json:
    """Return a job of some seconds in many steps, which it reports."""
    session_stack.wait_until_ready()
    table = draw_table(2000, 20)
    table[np.random.default_rng(1).random(table.shape) < 0.3] = np.nan
    estimator = {"kind": "vnce", "penalty": 1.0, "noise_ratio": 30, "max_iter": 8, "tol": 1e-9}
    dataset_id = upload(session_stack, table)
    return {"kind": "estimation", "dataset_id": dataset_id, "estimator": estimator, "seed": 7}


@pytest.fixture(scope="package")
def undisturbed(session_stack: Stack, long_fit: Json) -> Json:
    """Return the estimates of `long_fit` where nothing has gone wrong."""
    job_id = session_stack.submit(long_fit)
    job = session_stack.wait(job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 1)
    return session_stack.estimates(job_id)


@pytest.fixture(scope="package")
def long_chains(session_stack: Stack, long_fit: Json) -> Json:
    """Return a job of some seconds in thousands of steps, after each of which it can go on."""
    estimator = {"kind": "contrastive-divergence", "max_iter": 150}
    return {**long_fit, "estimator": estimator}


@pytest.fixture(scope="package")
def greedy_fit(session_stack: Stack) -> Json:
    """Return a job that needs more memory than the stack's workers may use."""
    session_stack.wait_until_ready()
    estimator = {"kind": "vnce", "penalty": 1.0, "noise_ratio": 100, "max_iter": 3}
    dataset_id = upload(session_stack, draw_table(30_000, 20))
    return {"kind": "estimation", "dataset_id": dataset_id, "estimator": estimator, "seed": 7}


@pytest.fixture
def silent_job() -> Json:
    """Return a job of some ten seconds of which most are one step, without a word."""
    return {"kind": "simulation", "graph": "ring", "n_variables": 500, "n_rows": 20_000, "seed": 1}


@pytest.fixture
def short_job() -> Json:
    """Return a job that is done in a moment."""
    return {"kind": "simulation", "graph": "ring", "n_variables": 3, "n_rows": 10, "seed": 1}
