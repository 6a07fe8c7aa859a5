"""Browsers are told, by every answer, that it is data and no page."""

import re

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.settings import Settings

ANSWERS = {
    "data": ("GET", "/v1/version"),
    "an unknown path": ("GET", "/nothing"),
    "a refusal": ("POST", "/v1/jobs"),
    "a method that does not apply": ("PATCH", "/v1/jobs"),
    "a head": ("HEAD", "/livez"),
    "a path below that of the documentation": ("GET", "/docs/nothing"),
}


@pytest.mark.parametrize(("method", "path"), ANSWERS.values(), ids=ANSWERS.keys())
def test_every_answer_is_sandboxed_and_kept_by_nobody(
    client: TestClient, method: str, path: str
) -> None:
    headers = client.request(method, path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    policy = set(headers["content-security-policy"].split("; "))
    assert {"default-src 'none'", "frame-ancestors 'none'", "sandbox"} <= policy


def test_an_answer_to_our_own_mistake_has_them_too(settings: Settings) -> None:
    app = create_app(settings)
    app.add_api_route("/mistake", lambda: 1 / 0)
    headers = TestClient(app, raise_server_exceptions=False).get("/mistake").headers
    assert "sandbox" in headers["content-security-policy"]
    assert headers.get_list("x-content-type-options") == ["nosniff"]


def test_what_an_endpoint_says_of_caching_stays(client: TestClient) -> None:
    path = client.post("/v1/datasets", content=b"a,b\n1,2\n").headers["location"]
    assert client.get(path).headers.get_list("cache-control") == ["no-cache"]
    assert "immutable" in client.get(f"{path}/content").headers["cache-control"]


@pytest.mark.parametrize("root_path", ["", "/vnce"])
def test_the_documentation_runs_on_files_of_our_own_alone(
    settings: Settings, root_path: str
) -> None:
    client = TestClient(create_app(settings.model_copy(update={"root_path": root_path})))
    page = client.get(f"{root_path}/docs")
    assert "script-src 'self' 'unsafe-inline'" in page.headers["content-security-policy"]
    addresses = re.findall(r"(?:href|src)=\"([^\"]+)\"", page.text)
    assert len(addresses) == 3
    for address in addresses:
        assert address.startswith(f"{root_path}/docs-files/")
        answer = client.get(address)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
        again = client.get(address, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
