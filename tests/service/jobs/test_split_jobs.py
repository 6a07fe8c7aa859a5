"""Jobs that were split into parts, over HTTP."""

import pytest
from fastapi.testclient import TestClient

from service.db.database import Database
from service.jobs import leases
from service.jobs.specs.experiment import ExperimentPartSpec


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client; the SQL is tested on both kinds elsewhere."""
    return sqlite_url


@pytest.fixture
def split_job(client: TestClient, database: Database) -> str:
    """Return the id of an experiment, submitted under the key `split`, that is at its two parts."""
    experiment = {"kind": "experiment", "experiment": {"name": "mixture-em"}, "seed": 1}
    made = client.post("/v1/jobs", json=experiment, headers={"Idempotency-Key": "split"}).json()
    choices = {**made["spec"], "kind": "experiment-part"}
    parts = [
        ExperimentPartSpec.model_validate({**choices, "part": i, "label": f"part {i}"})
        for i in range(2)
    ]
    with database.transaction() as session:
        taken = leases.claim(session, made["id"], 60)
        assert taken is not None
        assert leases.split(session, made["id"], taken.token, parts)
    return str(made["id"])


def test_replayed_submission_of_a_job_that_was_split_tells_of_its_parts(
    client: TestClient, split_job: str
) -> None:
    experiment = {"kind": "experiment", "experiment": {"name": "mixture-em"}, "seed": 1}
    again = client.post("/v1/jobs", json=experiment, headers={"Idempotency-Key": "split"})
    assert again.status_code == 200
    assert again.json()["parts"]["n_total"] == 2
    assert again.json() == client.get(f"/v1/jobs/{split_job}").json()


def test_parts_are_listed_by_their_job_or_by_their_kind(client: TestClient, split_job: str) -> None:
    def listed(**query: str) -> set[str]:
        items = client.get("/v1/jobs", params=query).json()["items"]
        return {item["kind"] for item in items} if items else set()

    assert listed() == {"experiment"}
    assert listed(parent_id=split_job) == {"experiment-part"}
    assert listed(kind="experiment-part") == {"experiment-part"}
    assert listed(kind="experiment-part", state="succeeded") == set()
    assert listed(kind="experiment-part", parent_id="job_other") == set()
