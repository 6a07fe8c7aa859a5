"""No request, however odd, makes the service answer 500 or something other than a problem."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from service.app import create_app
from service.settings import Authentication, Settings

PATHS = sorted(
    create_app(Settings(database_url="sqlite://", authentication=Authentication.NONE)).openapi()[
        "paths"
    ]
)
PARAMETERS = [
    "state",
    "kind",
    "tag",
    "dataset_id",
    "limit",
    "cursor",
    "score",
    "format",
    "selected",
]
ODD_TEXT = st.text(max_size=20) | st.sampled_from(["", "\0", "%", "../..", "ds_x", "-1", "1e999"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | ODD_TEXT
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXT, inner, max_size=3)
)
# Bodies that come close: a good one with some of its fields replaced.
FIELDS = ["kind", "dataset_id", "variables", "model", "estimator", "edge_threshold", "seed", "tag"]
ALMOST = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4).map(
    lambda changes: {"kind": "estimation", "dataset_id": "ds_x", **changes}
)
# The fixture's database is the same for every example; none of them stores anything.
SHARED = hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def settings(database_url: str) -> Settings:
    """Return settings on a database of either kind: PostgreSQL takes fewer texts than SQLite."""
    return Settings(
        database_url=database_url,
        broker_url="redis://127.0.0.1:1/0",
        authentication=Authentication.NONE,
    )


def assert_is_well_answered(answer: Any) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


@SHARED
@given(body=ALMOST | JSON, path=st.sampled_from(["/v1/jobs", "/v1/jobs:validate"]))
def test_any_json_is_well_answered(client: TestClient, body: Any, path: str) -> None:
    # Python's JSON has NaN and infinity, which a client may send though they are not allowed.
    content = json.dumps(body)
    answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert_is_well_answered(answer)
    assert answer.status_code >= 400


@SHARED
@given(data=st.data(), path=st.sampled_from(PATHS))
def test_any_query_is_well_answered(client: TestClient, data: st.DataObject, path: str) -> None:
    for name in ("job_id", "dataset_id", "name"):
        path = path.replace("{" + name + "}", quote(data.draw(ODD_TEXT), safe=""))
    query = data.draw(st.dictionaries(st.sampled_from(PARAMETERS), ODD_TEXT, max_size=3))
    headers = {"If-None-Match": "*", "Last-Event-ID": "x", "Accept": "text/html"}
    assert_is_well_answered(client.get(path, params=query, headers=headers))


@SHARED
@given(content=st.binary(max_size=200), media_type=st.sampled_from(["application/json", "x/y", ""]))
def test_any_bytes_are_well_answered(client: TestClient, content: bytes, media_type: str) -> None:
    answer = client.post("/v1/jobs", content=content, headers={"Content-Type": media_type})
    assert_is_well_answered(answer)


@pytest.mark.parametrize("text", ["%00", "%FF", "%ED%A0%80"])
def test_identifier_that_no_database_can_hold_is_not_found(client: TestClient, text: str) -> None:
    for path in PATHS:
        if "_id}" in path and path.partition("}")[2] != "/cancellation":
            odd = path.replace("{job_id}", text).replace("{dataset_id}", text)
            answer = client.get(odd.replace("{name}", "network"))
            assert answer.status_code in (404, 422), odd


def test_head_is_answered_wherever_get_is(client: TestClient) -> None:
    for path in PATHS:
        got, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (got.status_code, b""), path
