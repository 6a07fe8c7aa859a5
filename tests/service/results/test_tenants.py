"""Another tenant's things are not there, on any route."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.jobs.records import JobRecord
from service.settings import Settings

MakeKey = Callable[..., dict[str, str]]
NEEDS_NO_ID = {
    "/livez",
    "/readyz",
    "/metrics",
    "/v1/version",
    "/v1/status",
    "/v1/model-kinds",
    "/v1/estimator-kinds",
    "/v1/datasets:preview",
}
# Lists, and what makes something new: looked at one by one below.
WITHOUT_ID = {"/v1/datasets", "/v1/jobs", "/v1/jobs:validate", "/v1/api-keys"}
BODIES = {
    "put_ground_truth": {"kind": "edges", "edges": [{"source": "a", "target": "b"}]},
}


@pytest.fixture
def client(keyed_settings: Settings) -> Iterator[TestClient]:
    """Yield a client of an API that asks for keys."""
    with TestClient(create_app(keyed_settings), raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture
def owned(client: TestClient, make_key: MakeKey, scored_job_id: str, database: Database) -> Any:
    """Return the ids of one tenant's data set, job and key, and that tenant's header."""
    header = make_key(DEFAULT_TENANT)
    with database.snapshot() as session:
        dataset_id = session.get_one(JobRecord, scored_job_id).dataset_id
    key_id = client.get("/v1/api-keys", headers=header).json()["items"][0]["id"]
    return {"dataset_id": dataset_id, "job_id": scored_job_id, "key_id": key_id}, header


def operations(client: TestClient) -> list[tuple[str, str, dict[str, Any]]]:
    paths = client.get("/openapi.json").json()["paths"]
    return [
        (method, path, operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


def test_every_route_with_an_id_answers_404_to_another_tenant(
    client: TestClient, owned: Any, make_key: MakeKey
) -> None:
    ids, owner = owned
    other = make_key("other")
    walked = 0
    for method, path, operation in operations(client):
        if path in NEEDS_NO_ID | WITHOUT_ID:
            continue
        assert "_id}" in path, f"{path} is on no list of this test"
        address = path.replace("{name:path}", "{name}").format(**ids, name="graph.csv")
        body = BODIES.get(operation["operationId"])
        answer = client.request(method, address, headers=other, json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found"), (method, path)
        walked += 1
        if method == "get" and not path.endswith("/events"):
            mine = client.request(method, address, headers=owner)
            assert mine.status_code == 200, (path, mine.text)
    assert walked > 15


def test_lists_of_another_tenant_are_empty(
    client: TestClient, owned: Any, make_key: MakeKey
) -> None:
    ids, owner = owned
    other = make_key("other")
    for path in (
        "/v1/datasets",
        "/v1/jobs",
        f"/v1/jobs?dataset_id={ids['dataset_id']}",
        f"/v1/jobs?parent_id={ids['job_id']}",
    ):
        assert client.get(path, headers=other).json()["items"] == [], path
    assert len(client.get("/v1/datasets", headers=owner).json()["items"]) == 1
    assert len(client.get("/v1/jobs", headers=owner).json()["items"]) == 1


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs:validate"])
def test_a_job_on_another_tenants_things_is_refused(
    client: TestClient, owned: Any, make_key: MakeKey, path: str
) -> None:
    ids, owner = owned
    other = make_key("other")
    for body in (
        {"kind": "estimation", "dataset_id": ids["dataset_id"]},
        {"kind": "scoring", "job_id": ids["job_id"]},
        {"kind": "bootstrap", "job_id": ids["job_id"]},
        {"kind": "comparison", "dataset_id": ids["dataset_id"], "specifications": [{}, {}]},
    ):
        assert client.post(path, json=body, headers=other).status_code == 404
        assert client.post(path, json=body, headers=owner).status_code in (200, 202)


def test_a_network_is_not_compared_with_another_tenants(
    client: TestClient, owned: Any, make_key: MakeKey
) -> None:
    ids, _ = owned
    body = {"kind": "difference", "job_id": ids["job_id"], "by": "a"}
    answer = client.post("/v1/jobs", json=body, headers=make_key("other"))
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_two_tenants_may_use_the_same_idempotency_key(
    client: TestClient, owned: Any, make_key: MakeKey
) -> None:
    _, owner = owned
    body = {"kind": "simulation", "graph": "ring", "n_variables": 4, "n_rows": 50}
    made = [
        client.post("/v1/jobs", json=body, headers={**header, "Idempotency-Key": "k"})
        for header in (owner, make_key("other"), owner)
    ]
    assert [answer.status_code for answer in made] == [202, 202, 200]
    ids = [answer.json()["id"] for answer in made]
    assert ids[0] == ids[2] != ids[1]


def test_a_keys_unfinished_jobs_are_bounded(keyed_settings: Settings, make_key: MakeKey) -> None:
    body = {"kind": "simulation", "graph": "ring", "n_variables": 4, "n_rows": 50}
    app = create_app(keyed_settings.model_copy(update={"max_unfinished_jobs": 2}))
    ours, theirs = make_key(), make_key()
    with TestClient(app) as client:
        ids = [client.post("/v1/jobs", json=body, headers=ours).json()["id"] for _ in range(2)]
        refused = client.post("/v1/jobs", json=body, headers=ours)
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-jobs")
        assert int(refused.headers["retry-after"]) > 0
        assert client.post("/v1/jobs", json=body, headers=theirs).status_code == 202
        client.put(f"/v1/jobs/{ids[0]}/cancellation", headers=ours)
        assert client.post("/v1/jobs", json=body, headers=ours).status_code == 202
