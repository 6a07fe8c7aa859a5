"""A character that no text in PostgreSQL holds is answered for, whatever the database."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.settings import Authentication, Settings

PATHS = [
    ("GET", "/v1/jobs/{}"),
    ("DELETE", "/v1/jobs/{}"),
    ("PUT", "/v1/jobs/{}/cancellation"),
    ("GET", "/v1/jobs/{}/events"),
    ("GET", "/v1/jobs/{}/result"),
    ("GET", "/v1/jobs/job_1/result/files/{}"),
    ("GET", "/v1/jobs/job_1/result/files/figures/{}.svg"),
    ("GET", "/v1/datasets/{}"),
    ("GET", "/v1/datasets/{}/content"),
    ("GET", "/v1/datasets/{}/ground-truth"),
    ("DELETE", "/v1/datasets/{}"),
]
QUERIES = [
    ("GET", "/v1/jobs?tag={}"),
    ("GET", "/v1/jobs?cursor={}"),
    ("GET", "/v1/jobs?parent_id={}"),
    ("GET", "/v1/datasets?cursor={}"),
    ("GET", "/v1/jobs?tag=mine&{}=1"),
    ("POST", "/v1/datasets?name={}"),
    ("POST", "/v1/datasets?na_values={}"),
]


@pytest.fixture
def client(database_url: str) -> Iterator[TestClient]:
    """Yield a client of the API on either kind of database."""
    settings = Settings(database_url=database_url, authentication=Authentication.NONE)
    with TestClient(create_app(settings), raise_server_exceptions=False) as opened:
        yield opened


def test_nul_in_a_path_is_not_found_and_in_a_query_does_not_fit(client: TestClient) -> None:
    for nul in ("%00", "a%00b"):
        for method, path in PATHS:
            answer = client.request(method, path.format(nul))
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found"), path
        for method, path in QUERIES:
            answer = client.request(method, path.format(nul), content=b"a,b\n1,2\n3,4\n")
            assert (answer.status_code, answer.json()["code"]) == (422, "validation-failed"), path
