"""A compressed body is refused wherever a body is taken."""

import gzip

import pytest
from fastapi.testclient import TestClient

ROUTES = [
    ("POST", "/v1/datasets"),
    ("POST", "/v1/datasets:preview"),
    ("PUT", "/v1/datasets/dataset_x/ground-truth"),
    ("POST", "/v1/jobs"),
    ("POST", "/v1/jobs:validate"),
    ("POST", "/v1/api-keys"),
]


def test_every_route_with_a_body_is_tried(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    with_body = [
        (method.upper(), path.replace("{dataset_id}", "dataset_x"))
        for path, operations in paths.items()
        for method, operation in operations.items()
        if "requestBody" in operation
    ]
    assert sorted(with_body) == sorted(ROUTES)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_compressed_body_is_refused(client: TestClient, method: str, path: str) -> None:
    for coding in ("gzip", "GZIP", "br", "identity, gzip", "x"):
        headers = {"Content-Encoding": coding, "Content-Type": "application/json"}
        answer = client.request(method, path, content=gzip.compress(b"{}"), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")
        assert "Content-Encoding" in answer.json()["detail"]


def test_a_coding_in_a_second_header_is_refused(client: TestClient) -> None:
    headers = [("Content-Encoding", "identity"), ("Content-Encoding", "gzip")]
    answer = client.post(
        "/v1/datasets:preview", content=gzip.compress(b"a,b\n1,2\n"), headers=headers
    )
    assert answer.status_code == 415


def test_identity_is_no_coding(client: TestClient) -> None:
    headers = {"Content-Encoding": "Identity"}
    answer = client.post("/v1/datasets:preview", content=b"a,b\n1,2\n", headers=headers)
    assert answer.status_code == 200
