"""A disk without room: a clear answer, and nothing half-written."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from sqlalchemy import func, make_url, select, text

from service.db import schema
from service.db.blobs import BlobChunkRecord, BlobRecord
from tests.faults.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.faults]

MAX_UPLOADS = 100


def limited(num_bytes: int) -> tuple[str, ...]:
    """Return what a command is put behind so that no file of it grows beyond a size."""
    # In blocks of 512 bytes.
    return ("sh", "-c", f'ulimit -f {num_bytes // 512}; exec "$@"', "sh")


def csv_table(rng: np.random.Generator, num_rows: int) -> bytes:
    """Return a table of which no byte can be saved."""
    rows = rng.random((num_rows, 5))
    return b"a,b,c,d,e\n" + b"\n".join(",".join(map(str, row)).encode() for row in rows)


def upload_until_refused(stack: Stack, num_rows: int) -> tuple[list[bytes], Any]:
    """Upload tables until one is not taken; return those that were, and the refusal."""
    rng = np.random.default_rng(5)
    taken: list[bytes] = []
    while len(taken) < MAX_UPLOADS:
        content = csv_table(rng, num_rows)
        headers = {"Content-Type": "application/octet-stream"}
        answer = stack.http.post("/v1/datasets", content=content, headers=headers)
        if answer.status_code != 201:
            return taken, answer
        taken.append(content)
    raise AssertionError("the disk did not become full")


def assert_only_these_are_stored(stack: Stack, contents: list[bytes]) -> None:
    """Check that the database holds whole data sets and nothing else."""
    items = stack.client.datasets(limit=MAX_UPLOADS)["items"]
    stored = [stack.http.get(f"/v1/datasets/{item['id']}/content") for item in items]
    assert {answer.content for answer in stored} == set(contents)
    with stack.database.snapshot() as session:
        # The upload itself, and its numbers.
        num_blobs = session.scalar(select(func.count()).select_from(BlobRecord))
        assert num_blobs == 2 * len(contents)
        chunks = func.coalesce(func.sum(func.length(BlobChunkRecord.data)), 0)
        sizes = func.coalesce(func.sum(BlobRecord.size), 0)
        assert session.scalar(select(chunks)) == session.scalar(select(sizes))


def test_an_upload_that_sqlite_has_no_room_for_is_507_and_leaves_nothing(
    make_stack: Any, sqlite_url: str
) -> None:
    stack = make_stack(sqlite_url)
    stack.start_api(prefix=limited(2 * 2**20))
    stack.wait_until_ready()
    taken, refusal = upload_until_refused(stack, num_rows=3000)
    assert (refusal.status_code, refusal.json()["code"]) == (507, "storage-full")
    assert taken
    assert_only_these_are_stored(stack, taken)
    with stack.database.snapshot() as session:
        assert session.scalar(text("PRAGMA integrity_check")) == "ok"


def test_a_result_that_sqlite_has_no_room_for_fails_the_job_and_leaves_nothing(
    make_stack: Any, sqlite_url: str
) -> None:
    stack = make_stack(sqlite_url)
    stack.start_api()
    stack.start_dispatcher()
    stack.start_worker(prefix=limited(2**20))
    stack.wait_until_ready()
    body = {"kind": "simulation", "graph": "ring", "n_variables": 10, "n_rows": 20_000, "seed": 1}
    job = stack.wait(stack.submit(body))
    assert (job["state"], job["error"]["code"]) == ("failed", "storage-full")
    assert_only_these_are_stored(stack, [])
    # One that needs less room is done.
    assert stack.wait(stack.submit({**body, "n_rows": 10}))["state"] == "succeeded"


@pytest.fixture
def small_disk(postgres_server: str) -> Iterator[str]:
    """Yield a folder of the PostgreSQL server's user on a disk of 16 megabytes."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk, to be filled, needs root")
    with connect(postgres_server) as connection:
        data_folder = Path(connection.execute("SHOW data_directory").fetchone()[0])
    if not data_folder.exists():
        pytest.skip(
            "the given PostgreSQL server runs on another machine, whose disk cannot be filled"
        )
    options = f"size=16m,mode=700,uid={data_folder.stat().st_uid}"
    with tempfile.TemporaryDirectory(prefix="vnce-disk-") as folder:
        Path(folder).chmod(0o755)
        disk = Path(folder) / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk]
        mounted = subprocess.run(mount, capture_output=True, text=True)
        if mounted.returncode != 0:
            pytest.skip(f"a small disk cannot be mounted: {mounted.stderr.strip()}")
        yield str(disk)
        subprocess.run(["umount", disk], check=True)


@pytest.fixture
def small_postgres_url(postgres_server: str, small_disk: str) -> Iterator[str]:
    """Yield the URL of a migrated database on the small disk."""
    with connect(postgres_server) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
        connection.execute("CREATE DATABASE small TABLESPACE small")
        url = make_url(postgres_server).set(database="small").render_as_string(hide_password=False)
        schema.upgrade(url)
        yield url
        connection.execute("DROP DATABASE small WITH (FORCE)")
        connection.execute("DROP TABLESPACE small")


def connect(server: str) -> psycopg.Connection[Any]:
    url = make_url(server).set(drivername="postgresql")
    return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)


def test_an_upload_that_postgresql_has_no_room_for_is_507_and_leaves_nothing(
    make_stack: Any, small_postgres_url: str
) -> None:
    stack = make_stack(small_postgres_url)
    stack.start_api()
    stack.wait_until_ready()
    with stack.database.snapshot() as session:
        # Our own connection: a server whose disk is full cannot always make one.
        session.execute(text("SELECT 1"))
    taken, refusal = upload_until_refused(stack, num_rows=10_000)
    assert (refusal.status_code, refusal.json()["code"]) == (507, "storage-full")
    assert taken
    assert_only_these_are_stored(stack, taken)
