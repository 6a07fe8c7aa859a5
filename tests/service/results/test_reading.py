"""Results as the two kinds of database give them: in pages, while they are deleted, and after."""

import json
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from service.commands.expire import expire
from service.db.blobs import CHUNK_BYTES, BlobChunkRecord, BlobRecord
from service.db.clock import now
from service.db.database import Database
from service.jobs import leases, lifecycle
from service.jobs import result_access as access
from service.jobs import result_removal as removal
from service.jobs.records import JobRecord
from service.jobs.result_records import ResultRecord
from service.results import repository
from service.results.downloads import send_artefact
from service.results.outcome import Artefact, Outcome

# A document, rows and a file.
PARTS = ["", "/graph", "/precision"]


def refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def test_document_is_what_the_worker_handed_over(
    client: TestClient, job_id: str, outcome: Outcome
) -> None:
    answer = client.get(f"/v1/jobs/{job_id}/result")
    assert answer.status_code == 200
    document = json.loads(answer.text, parse_constant=refuse_constant)
    links = document.pop("links")
    files = {file["name"]: file for file in document.pop("files")}
    assert document.pop("job_id") == job_id
    assert document == outcome.document.model_dump(mode="json")
    assert links["job"] == f"/v1/jobs/{job_id}"
    assert set(files) == {artefact.name for artefact in outcome.artefacts}
    network = files["figures/network.svg"]
    downloaded = client.get(network["address"])
    assert downloaded.content == b"figures/network.svg"
    assert (network["size"], network["media_type"]) == (19, downloaded.headers["content-type"])


def test_edges_come_ranked_with_the_rule_that_selects_them(
    client: TestClient, job_id: str, outcome: Outcome
) -> None:
    page = client.get(f"/v1/jobs/{job_id}/result/graph").json()
    assert page["names"] == outcome.document.names
    assert page["edge_rule"]["threshold"] == 0.1
    assert page["next_cursor"] is None
    assert [edge.pop("rank") for edge in page["edges"]] == [1, 2, 3, 4, 5, 6]
    assert page["edges"] == [vars(edge) for edge in outcome.edges]


def test_walk_over_pages_meets_every_edge_once(client: TestClient, job_id: str) -> None:
    ranks: list[int] = []
    cursor: str | None = "0"
    while cursor is not None:
        address = f"/v1/jobs/{job_id}/result/graph?limit=4&cursor={cursor}"
        page = client.get(address).json()
        ranks.extend(edge["rank"] for edge in page["edges"])
        cursor = page["next_cursor"]
    assert ranks == [1, 2, 3, 4, 5, 6]


def test_a_large_file_is_sent_byte_for_byte(
    client: TestClient, database: Database, add_job: Callable[..., str], outcome: Outcome
) -> None:
    content = bytes(range(256)) * (5 * CHUNK_BYTES // 512) + b"rest"
    large = replace(outcome, artefacts=[Artefact("precision.npy", "application/x", content)])
    job_id = add_job()
    with database.transaction() as session:
        taken = leases.claim(session, job_id, 60)
        assert taken is not None
        assert leases.succeed(session, job_id, taken.token)
        repository.store(session, job_id, large)
    answer = client.get(f"/v1/jobs/{job_id}/result/files/precision?format=npy")
    assert answer.content == content
    assert answer.headers["content-length"] == str(len(content))


@pytest.mark.parametrize("part", PARTS)
def test_a_result_that_is_deleted_while_it_is_read_is_read_whole(
    client: TestClient,
    database: Database,
    job_id: str,
    part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = f"/v1/jobs/{job_id}/result{part}"
    before = client.get(address)
    find = access.result_of

    def find_and_delete(session: Session, job_id: str) -> tuple[JobRecord, ResultRecord]:
        found = find(session, job_id)
        with database.transaction() as other:
            lifecycle.remove(other, job_id)
        return found

    monkeypatch.setattr(access, "result_of", find_and_delete)
    assert client.get(address).content == before.content
    assert client.get(address).status_code == 404


def test_result_that_is_no_longer_kept_is_gone(
    client: TestClient, database: Database, job_id: str
) -> None:
    assert expire(database, days=1) == 0
    with database.transaction() as session:
        session.execute(update(ResultRecord).values(created_at=now() - 2 * 86_400))
    assert expire(database, days=1) == 1
    answers = [client.get(f"/v1/jobs/{job_id}/result{part}") for part in PARTS]
    assert {answer.status_code for answer in answers} == {410}
    assert {answer.json()["code"] for answer in answers} == {"result-expired"}


def test_others_write_while_many_results_are_deleted(
    database: Database,
    add_job: Callable[..., str],
    finish: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job_ids = [add_job() for _ in range(5)]
    for job_id in job_ids:
        finish(job_id)
    with database.transaction() as session:
        session.execute(update(ResultRecord).values(created_at=0.0))
    left: list[int] = []

    def write_meanwhile(seconds: float) -> None:
        with database.transaction() as session:
            session.execute(update(JobRecord).values(tag="written meanwhile"))
            left.append(session.scalars(select(func.count()).select_from(ResultRecord)).one())

    monkeypatch.setattr(removal, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(time, "sleep", write_meanwhile)
    assert expire(database, days=1) == len(job_ids)
    assert left == [3, 1]


def test_deleting_a_job_deletes_every_byte_of_its_result(
    client: TestClient, database: Database, job_id: str
) -> None:
    dataset_id = client.get(f"/v1/jobs/{job_id}").json()["spec"]["dataset_id"]
    assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
    with database.snapshot() as session:
        blobs = session.execute(select(func.count(BlobRecord.id))).scalar_one()
        chunks = session.execute(select(func.count(BlobChunkRecord.blob_id))).scalar_one()
    # Those of the data set.
    assert (blobs, chunks) == (1, 1)
    assert dataset_id.startswith("ds_")


def test_a_small_file_is_sent_whole_though_it_is_deleted_meanwhile(
    client: TestClient, database: Database, job_id: str
) -> None:
    request = Request({"type": "http", "headers": []})
    answer = send_artefact(request, database, job_id, "precision.csv", as_file=True)
    assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
    assert answer.body == b"precision.csv"
    assert answer.headers["Content-Length"] == str(len(answer.body))
