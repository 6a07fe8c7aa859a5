"""Below a prefix every address that an answer names has it, and leads somewhere."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from service.app import create_app
from service.settings import Settings

JOB = {"kind": "simulation", "graph": "ring", "n_variables": 3, "n_rows": 10, "seed": 1}


@pytest.fixture
def below(settings: Settings) -> TestClient:
    """Return a client of the API below /vnce; what it is told says so."""
    return TestClient(create_app(settings.model_copy(update={"root_path": "/vnce"})))


def addresses_in(document: Any) -> list[str]:
    """Return every text of a document that is an address."""
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, list):
        return [address for each in document for address in addresses_in(each)]
    is_address = isinstance(document, str) and document.startswith("/")
    return [document] if is_address else []


@pytest.mark.parametrize("asked", ["/vnce", ""], ids=["as a proxy asks", "as a probe asks"])
def test_every_address_of_an_answer_has_the_prefix(below: TestClient, asked: str) -> None:
    uploaded = below.post(f"{asked}/v1/datasets", content=b"a,b\n1,2\n2,1\n")
    submitted = below.post(f"{asked}/v1/jobs", json=JOB)
    job = submitted.json()
    page = below.get(f"{asked}/v1/jobs").json()
    named = [
        uploaded.headers["location"],
        submitted.headers["location"],
        *addresses_in(job["links"]),
        *addresses_in(page["items"][0]["links"]),
    ]
    assert len(named) == 8
    assert all(address.startswith("/vnce/v1/") for address in named)
    assert below.get(uploaded.headers["location"]).status_code == 200
    assert below.get(job["links"]["job"]).json() == job
    cancelled = below.put(job["links"]["cancellation"])
    assert cancelled.json()["state"] == "cancelled"
    with below.stream("GET", job["links"]["events"]) as stream:
        (event,) = (line for line in stream.iter_lines() if line.startswith("data: "))
    assert f'"job": "{job["links"]["job"]}"' in event


def test_a_problem_names_the_path_that_was_asked_for(below: TestClient) -> None:
    assert below.get("/vnce/v1/jobs/job_none").json()["instance"] == "/vnce/v1/jobs/job_none"


@pytest.mark.slow
def test_the_specification_says_where_the_service_is(below: TestClient) -> None:
    document = below.get("/vnce/openapi.json").json()
    assert document["servers"] == [{"url": "/vnce"}]
    assert "/v1/jobs" in document["paths"]
    assert "url: '/vnce/openapi.json'" in below.get("/vnce/docs").text


def test_another_prefix_leads_nowhere(below: TestClient) -> None:
    assert below.get("/vncex/v1/jobs").status_code == 404
    assert below.get("/vnce/vnce/v1/jobs").status_code == 404


@pytest.mark.parametrize("prefix", ["vnce", "/vnce/", "/", "/a b", "/a?b", "/vnce\n"])
def test_what_is_no_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ValidationError, match="root_path"):
        Settings(root_path=prefix)
