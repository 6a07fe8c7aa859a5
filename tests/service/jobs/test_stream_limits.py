"""Event streams are bounded by key and in all, and leave room for whoever asks."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.http.scopes import Scope
from service.keys import lifecycle
from tests.served import Served, served_api
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

HASH_KEY = "k" * 32
MAX_STREAMS = 3
MAX_STREAMS_IN_ALL = 5


@pytest.fixture(scope="module")
def database_url(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("streams") / "vnce.db"
    shutil.copyfile(sqlite_template, file)
    return f"sqlite:///{file}"


@pytest.fixture(scope="module")
def keys(database_url: str) -> list[dict[str, str]]:
    """Return the headers of three keys of one tenant."""
    database = Database(database_url)
    with database.of(DEFAULT_TENANT).transaction() as session:
        made = [
            lifecycle.create(session, HASH_KEY, name="x", scopes=list(Scope), expires_at=None)
            for _ in range(3)
        ]
    database.dispose()
    return [{"Authorization": f"Bearer {key.token}"} for key in made]


@pytest.fixture(scope="module")
def api(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield an API process that asks for keys."""
    environment = {
        "VNCE_DATABASE_URL": database_url,
        "VNCE_BROKER_URL": "redis://127.0.0.1:1/0",
        "VNCE_KEY_SECRET": HASH_KEY,
        "VNCE_MAX_STREAMS": str(MAX_STREAMS),
        "VNCE_MAX_STREAMS_IN_ALL": str(MAX_STREAMS_IN_ALL),
    }
    with served_api(tmp_path_factory.mktemp("api"), environment) as api:
        yield api
        api.hang_up()


def test_streams_are_bounded_and_polls_are_answered(
    api: Served, keys: list[dict[str, str]]
) -> None:
    client = api.client()
    spec = {"kind": "simulation", "graph": "ring", "n_variables": 3, "n_rows": 10, "seed": 1}
    submitted = client.post("/v1/jobs", json=spec, headers=keys[0])
    assert submitted.status_code == 202, submitted.text
    address = submitted.headers["location"]

    def listen(key: dict[str, str]) -> httpx.Response:
        request = client.build_request("GET", f"{address}/events", headers=key)
        return client.send(request, stream=True)

    def problem_of(answer: httpx.Response) -> tuple[int, str]:
        answer.read()
        assert answer.headers["content-type"] == "application/problem+json"
        assert int(answer.headers["retry-after"]) > 0
        return answer.status_code, answer.json()["code"]

    first = [listen(keys[0]) for _ in range(MAX_STREAMS)]
    assert [stream.status_code for stream in first] == [200] * MAX_STREAMS
    assert problem_of(listen(keys[0])) == (429, "too-many-requests")
    others = [listen(keys[1]) for _ in range(MAX_STREAMS_IN_ALL - MAX_STREAMS)]
    assert [stream.status_code for stream in others] == [200] * len(others)
    assert problem_of(listen(keys[2])) == (503, "unavailable")
    assert client.get(address, headers=keys[2]).status_code == 200
    first[0].close()

    def is_let_in() -> bool:
        answer = listen(keys[2])
        if answer.status_code != 200:
            answer.read()
        return answer.status_code == 200

    wait_for(is_let_in, "the place of a stream that was closed")
