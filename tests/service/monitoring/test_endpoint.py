"""What a scrape tells: true, in few series, and also when the database is away."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from service.app import create_app
from service.db.database import Database
from service.jobs import leases
from service.monitoring import heartbeats
from service.monitoring.heartbeats import ProcessIdentity
from service.monitoring.records import ProcessKind
from service.settings import Settings

Labels = frozenset[tuple[str, str]]
Scrape = dict[tuple[str, Labels], float]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client."""
    return sqlite_url


def scrape(client: TestClient) -> Scrape:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(answer.text)
    samples = itertools.chain.from_iterable(family.samples for family in families)
    return {(one.name, frozenset(one.labels.items())): one.value for one in samples}


def key(name: str, **labels: str) -> tuple[str, Labels]:
    return name, frozenset(labels.items())


def test_requests_are_counted_by_template_and_made_up_ones_are_one(client: TestClient) -> None:
    for number in range(3):
        client.get(f"/v1/jobs/job_{number}")
        client.get(f"/made-up/{number}")
        client.request(f"MADEUP{number}", "/livez")
    client.head("/livez")
    told = scrape(client)
    name = "vnce_http_requests_total"
    assert told[key(name, method="GET", route="/v1/jobs/{job_id}", status="404")] == 3
    assert told[key(name, method="GET", route="unknown", status="404")] == 3
    assert told[key(name, method="other", route="/livez", status="405")] == 3
    assert told[key(name, method="HEAD", route="/livez", status="200")] == 1
    assert sum(sample == name for sample, _ in told) == 4
    seconds = "vnce_http_request_seconds_count"
    assert told[key(seconds, method="GET", route="/v1/jobs/{job_id}")] == 3


def test_queue_and_processes_are_told_as_they_are(
    client: TestClient, database: Database, add_waiting_job: Callable[[], str]
) -> None:
    job_ids = [add_waiting_job() for _ in range(3)]
    worker = ProcessIdentity("process_1", ProcessKind.WORKER, "host", 12, "1.0")
    with database.transaction() as session:
        leases.claim(session, job_ids[0], lease_seconds=30)
        leases.claim(session, job_ids[1], lease_seconds=-1)
        heartbeats.beat(session, worker, memory_bytes=1000, job_id=None)
    told = scrape(client)
    assert told[key("vnce_jobs", state="queued")] == 1
    assert told[key("vnce_jobs", state="running")] == 2
    assert told[key("vnce_jobs", state="split")] == 0
    assert told[key("vnce_expired_leases")] == 1
    assert told[key("vnce_outbox_messages")] == 1
    assert told[key("vnce_processes", kind="worker")] == 1
    assert told[key("vnce_processes", kind="dispatcher")] == 0
    memory = key("vnce_process_memory_bytes", kind="worker", host="host", pid="12")
    assert told[memory] == 1000
    assert told[key("vnce_job_attempts_total", kind="estimation")] == 2
    assert told[key("vnce_database_up")] == 1
    assert told[key("vnce_broker_up")] == 0


def test_the_wait_of_a_job_is_told_until_a_worker_has_it(
    client: TestClient, database: Database, add_waiting_job: Callable[..., str]
) -> None:
    oldest = add_waiting_job(waited=100.0)
    add_waiting_job(waited=50.0)
    name = key("vnce_oldest_queued_job_seconds")
    assert 100 <= scrape(client)[name] < 110
    with database.transaction() as session:
        leases.claim(session, oldest, lease_seconds=30)
    assert 50 <= scrape(client)[name] < 60


def test_fit_times_come_as_a_histogram(
    client: TestClient, database: Database, add_waiting_job: Callable[..., str]
) -> None:
    for _ in range(2):
        job_id = add_waiting_job()
        with database.transaction() as session:
            claim = leases.claim(session, job_id, lease_seconds=30)
            assert claim is not None
            leases.succeed(session, job_id, claim.token)
    told = scrape(client)
    assert told[key("vnce_fit_seconds_count", model="truncated-gaussian", estimator="vnce")] == 2
    buckets = [
        (float(dict(labels)["le"]), value)
        for (name, labels), value in told.items()
        if name == "vnce_fit_seconds_bucket"
    ]
    values = [value for _, value in sorted(buckets)]
    assert values == sorted(values)
    assert values[-1] == 2


def test_another_api_process_tells_the_same_of_the_queue(
    client: TestClient, settings: Settings, add_waiting_job: Callable[..., str]
) -> None:
    add_waiting_job()
    with TestClient(create_app(settings)) as other:
        assert scrape(other)[key("vnce_jobs", state="queued")] == 1
        client.get("/livez")
        requests = [labels for name, labels in scrape(other) if name == "vnce_http_requests_total"]
    assert ("route", "/livez") not in {pair for labels in requests for pair in labels}


def test_a_scrape_succeeds_while_the_database_is_away(settings: Settings) -> None:
    nowhere = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
    client = TestClient(create_app(settings.model_copy(update={"database_url": nowhere})))
    told = scrape(client)
    assert told[key("vnce_database_up")] == 0
    assert not any(name == "vnce_jobs" for name, _ in told)
    again: Any = scrape(client)
    assert again[key("vnce_http_requests_total", method="GET", route="/metrics", status="200")] == 1
