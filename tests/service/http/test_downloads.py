"""A download is whole, or ends early with one line in the log and a connection that is closed."""

import asyncio
import logging
from collections.abc import Callable, Iterator

import httpx
import pytest
from sqlalchemy.exc import OperationalError
from starlette.types import ASGIApp, Message

from service import logs
from service.app import create_app
from service.datasets.records import DatasetRecord
from service.db import blobs
from service.db.blobs import BlobRecord
from service.db.database import Database
from service.http.downloads import Download, send_blob
from service.settings import Authentication, Settings

Serve = Callable[[ASGIApp], int]
CHUNK = blobs.CHUNK_BYTES


def add_blob(database: Database, size: int) -> BlobRecord:
    with database.transaction() as session:
        return blobs.store(session, b"x" * size)


def delete(database: Database, blob: BlobRecord) -> None:
    with database.transaction() as session:
        blobs.remove(session, [blob.id])


def bodies_of(answer: ASGIApp, at_first: Callable[[], None]) -> list[Message]:
    """Return the messages of an answer's body; after the first something happens."""
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("nobody ever hangs up")

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            sent.append(message)
            if len(sent) == 1:
                at_first()

    asyncio.run(answer({"type": "http"}, receive, send))
    return sent


def test_a_large_blob_is_sent_chunk_by_chunk(database: Database) -> None:
    blob = add_blob(database, 2 * CHUNK + 7)
    with database.repeatable_read() as session:
        answer = send_blob(session, database, blob, "text/csv", {"ETag": "x"})
    sent = bodies_of(answer, lambda: None)
    assert [len(message["body"]) for message in sent] == [CHUNK, CHUNK, 7, 0]
    assert [message["more_body"] for message in sent] == [True, True, True, False]
    assert answer.headers["content-length"] == str(blob.size)


def test_a_small_blob_is_sent_whole_though_it_is_deleted_meanwhile(database: Database) -> None:
    blob = add_blob(database, CHUNK)
    with database.repeatable_read() as session:
        answer = send_blob(session, database, blob, "text/csv", {})
    delete(database, blob)
    assert answer.body == b"x" * CHUNK


def test_a_download_that_is_deleted_meanwhile_ends_early(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    blob = add_blob(database, 3 * CHUNK)
    with database.repeatable_read() as session:
        answer = send_blob(session, database, blob, "text/csv", {})
    sent = bodies_of(answer, lambda: delete(database, blob))
    assert [message["more_body"] for message in sent] == [True]
    [record] = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)
    assert record.message == (
        f"a download was cut off: deleted after {CHUNK} of its {3 * CHUNK} bytes"
    )


def test_a_download_ends_early_where_the_database_goes_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"x"
        raise OperationalError("SELECT", None, Exception("server closed the connection"))

    sent = bodies_of(Download(chunks()), lambda: None)
    assert [message["more_body"] for message in sent] == [True]
    [record] = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)


@pytest.mark.integration
def test_a_client_sees_that_bytes_are_missing(
    sqlite_url: str, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    everyone = Database(sqlite_url)
    database = everyone.of("default")
    # More than sockets hold back on the way.
    blob = add_blob(database, 64 * CHUNK)
    with database.transaction() as session:
        dataset = DatasetRecord(
            id="ds_1",
            name="table.csv",
            format="csv",
            num_rows=1,
            num_columns=1,
            summary={},
            original_blob_id=blob.id,
            table_blob_id=blob.id,
        )
        session.add(dataset)
    port = serve(create_app(Settings(database_url=sqlite_url, authentication=Authentication.NONE)))
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        with http.stream("GET", "/v1/datasets/ds_1/content") as answer:
            assert answer.status_code == 200
            assert http.delete("/v1/datasets/ds_1").status_code == 204
            with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message"):
                answer.read()
        assert http.get("/livez").status_code == 200
    told = [
        record
        for record in caplog.records
        if record.levelno >= logging.WARNING and logs.is_told(record)
    ]
    assert [record.message.partition(":")[0] for record in told] == ["a download was cut off"]
    everyone.dispose()
