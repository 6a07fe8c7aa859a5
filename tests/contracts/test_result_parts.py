"""What the worker makes is what the API serves: every part, of the type that it declares."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

from service.app import create_app
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.results.file_schemas import (
    ImputationsRead,
    MatrixRead,
    PartialCorrelationsRead,
    RocRead,
)
from service.results.pages import EstimationResultRead, GraphPage
from service.results.vocabulary import EdgeScore
from service.settings import Authentication, Settings
from tests.result_files import NETWORK_FILES, SCORED_FILES
from worker.run_job import run_job
from worker.settings import WorkerSettings

pytestmark = pytest.mark.slow

DOCUMENTS: dict[str, type[BaseModel]] = {
    "": EstimationResultRead,
    "/precision": MatrixRead,
    "/files/partial-correlations.json": PartialCorrelationsRead,
    "/files/imputations.json": ImputationsRead,
    "/graph": GraphPage,
} | {f"/roc?score={score}": RocRead for score in EdgeScore}


def as_csv(table: np.ndarray) -> str:
    """Return a table as CSV, NaN as an empty cell."""
    lines = [",".join("" if np.isnan(cell) else repr(float(cell)) for cell in row) for row in table]
    return "\n".join(["a,b,c,d", *lines])


@pytest.fixture(scope="module")
def client(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    file = tmp_path_factory.mktemp("contracts") / "vnce.db"
    shutil.copyfile(sqlite_template, file)
    with TestClient(
        create_app(Settings(database_url=f"sqlite:///{file}", authentication=Authentication.NONE))
    ) as opened:
        yield opened


@pytest.fixture(scope="module")
def result(client: TestClient) -> str:
    """Return the address of a real result, with gaps and a true graph."""
    rng = np.random.default_rng(7)
    table = np.abs(rng.normal(size=(60, 4)))
    table[rng.random(table.shape) < 0.1] = np.nan
    dataset = client.post("/v1/datasets", content=as_csv(table).encode()).json()
    truth = {"kind": "edges", "edges": [{"source": "a", "target": "b"}]}
    client.put(f"/v1/datasets/{dataset['id']}/ground-truth", json=truth).raise_for_status()
    estimator = {"kind": "vnce", "penalty": 1.0}
    body = {"kind": "estimation", "dataset_id": dataset["id"], "estimator": estimator, "seed": 7}
    job = client.post("/v1/jobs", json=body).json()
    url = client.app.state.settings.database_url
    database = Database(url).of(DEFAULT_TENANT)
    run_job(job["id"], database, WorkerSettings(database_url=url))
    database.dispose()
    job = client.get(f"/v1/jobs/{job['id']}").json()
    assert job["state"] == "succeeded", job["error"]
    return str(job["links"]["result"])


def refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


@pytest.mark.parametrize(("part", "model"), DOCUMENTS.items())
def test_document_fits_its_schema_and_strict_json(
    client: TestClient, result: str, part: str, model: type[BaseModel]
) -> None:
    answer = client.get(result + part)
    assert answer.status_code == 200
    model.model_validate(json.loads(answer.text, parse_constant=refuse_constant), strict=False)


def test_every_file_is_there_as_the_result_lists_it(client: TestClient, result: str) -> None:
    files = client.get(result).json()["files"]
    assert {file["name"] for file in files} == NETWORK_FILES | SCORED_FILES
    for file in files:
        answer = client.get(file["address"])
        assert answer.status_code == 200, file
        assert answer.headers["content-type"].partition(";")[0] == file["media_type"]
        assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]
