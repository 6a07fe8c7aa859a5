"""Jobs over HTTP."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from service.app import THREADS
from service.db.database import Database
from service.http.problems import ProblemCode, problem_document
from service.jobs import leases
from service.jobs.leases import Progress
from service.jobs.records import JobRecord, JobState

AddDataset = Callable[..., str]
TABLE = "a,b,c\n" + "\n".join(f"{1 + row},{5 + row % 3},{2 + row % 5}" for row in range(20))


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client; the SQL is tested on both kinds elsewhere."""
    return sqlite_url


@pytest.fixture
def body(add_dataset: AddDataset) -> dict[str, Any]:
    return {"kind": "estimation", "dataset_id": add_dataset(TABLE)}


@pytest.fixture
def job_id(client: TestClient, body: dict[str, Any]) -> str:
    """Return the id of a queued job."""
    return str(client.post("/v1/jobs", json=body).json()["id"])


@pytest.fixture
def token(database: Database, job_id: str) -> str:
    """Return the lease token of the job, which runs."""
    with database.transaction() as session:
        taken = leases.claim(session, job_id, 60)
    assert taken is not None
    return taken.token


def test_accepted_job_is_queued_and_has_an_address(
    client: TestClient, body: dict[str, Any]
) -> None:
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 202
    job = answer.json()
    assert job["state"] == "queued"
    assert answer.headers["location"] == job["links"]["job"] == f"/v1/jobs/{job['id']}"
    assert int(answer.headers["retry-after"]) >= 1
    assert client.get(answer.headers["location"]).json() == job


def test_defaults_are_filled_in(client: TestClient, body: dict[str, Any]) -> None:
    spec = client.post("/v1/jobs", json=body).json()["spec"]
    assert spec["variables"] == ["a", "b", "c"]
    assert spec["model"]["kind"] == "truncated-gaussian"
    assert spec["estimator"]["kind"] == "vnce"
    assert spec["seed"] == 0


def test_a_network_that_is_not_there_yet_is_not_compared(client: TestClient, job_id: str) -> None:
    body = {"kind": "difference", "job_id": job_id, "by": "a"}
    answer = client.post("/v1/jobs", json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "job-not-finished")
    assert job_id in answer.json()["detail"]


def test_replayed_submission_answers_200_with_the_same_job(
    client: TestClient, body: dict[str, Any]
) -> None:
    headers = {"Idempotency-Key": "a-key"}
    first = client.post("/v1/jobs", json=body, headers=headers)
    again = client.post("/v1/jobs", json=body, headers=headers)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]


def test_replay_finds_a_job_that_has_ended(
    client: TestClient, database: Database, body: dict[str, Any]
) -> None:
    headers = {"Idempotency-Key": "a-key"}
    first = client.post("/v1/jobs", json=body, headers=headers).json()
    with database.transaction() as session:
        session.execute(update(JobRecord).values(state=JobState.SUCCEEDED.value))
    again = client.post("/v1/jobs", json=body, headers=headers)
    assert again.json()["id"] == first["id"]
    assert "retry-after" not in again.headers


@pytest.mark.parametrize("key", ["", "two words", "x" * 256, "ümlaut".encode()])
def test_idempotency_key_must_be_visible_ascii(
    client: TestClient, body: dict[str, Any], key: str | bytes
) -> None:
    answer = client.post("/v1/jobs", json=body, headers={b"idempotency-key": key})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] == "idempotency-key"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"kind": "estimatoin"}, "/kind"),
        ({"dataset_id": None}, "/dataset_id"),
        ({"bogus": 1}, "/bogus"),
        ({"seed": -1}, "/seed"),
        ({"seed": 2**31}, "/seed"),
        ({"seed": "7"}, "/seed"),
        ({"seed": 7.5}, "/seed"),
        ({"seed": True}, "/seed"),
        ({"variables": []}, "/variables"),
        ({"variables": "a"}, "/variables"),
        ({"variables": ["a", 2]}, "/variables/1"),
        ({"edge_threshold": 1.5}, "/edge_threshold"),
        ({"min_observed": 0}, "/min_observed"),
        ({"min_observed": 2.0}, "/min_observed"),
        ({"tag": "two\nlines"}, "/tag"),
        ({"tag": ""}, "/tag"),
        ({"censored": "ignore"}, "/censored"),
        ({"model": {"kind": "magic"}}, "/model/kind"),
        ({"model": {"kind": "truncated-gaussian", "transform": "log"}}, "/model/transform"),
        ({"model": None}, "/model"),
        ({"estimator": {}}, "/estimator/kind"),
        ({"estimator": {"kind": "magic"}}, "/estimator/kind"),
        ({"estimator": {"kind": "vnce", "imputation": "mean"}}, "/estimator/imputation"),
        ({"estimator": {"kind": "vnce", "penalty": 0}}, "/estimator/penalty"),
        ({"estimator": {"kind": "vnce", "penalty": "0.3"}}, "/estimator/penalty"),
        ({"estimator": {"kind": "vnce", "preset": "paper", "noise_ratio": 30}}, "/estimator"),
        ({"estimator": {"kind": "vnce", "preset": "paper", "noise_draws": "sobol"}}, "/estimator"),
        ({"estimator": {"kind": "vnce", "preset": "paper", "tol": 1e-4}}, "/estimator"),
        ({"estimator": {"kind": "nce", "noise_ratio": 0}}, "/estimator/noise_ratio"),
        ({"estimator": {"kind": "nce", "noise_ratio": 2.5}}, "/estimator/noise_ratio"),
        ({"estimator": {"kind": "nce", "tol": 0}}, "/estimator/tol"),
        ({"estimator": {"kind": "nce", "max_iter": 0}}, "/estimator/max_iter"),
    ],
)
def test_wrong_field_is_named_by_a_pointer(
    client: TestClient, body: dict[str, Any], change: dict[str, Any], pointer: str
) -> None:
    answer = client.post("/v1/jobs", json=body | change)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "validation-failed"
    assert [item["pointer"] for item in problem["errors"]] == [pointer]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_number_that_is_not_finite_is_refused(
    client: TestClient, body: dict[str, Any], number: str
) -> None:
    text = json.dumps(body | {"edge_threshold": 7777}).replace("7777", number)
    answer = client.post("/v1/jobs", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/edge_threshold"


def test_data_set_that_does_not_fit_is_refused_with_every_reason(
    client: TestClient, add_dataset: AddDataset
) -> None:
    rows = "\n".join(f"{row},{-row},3" for row in range(20))
    body = {"kind": "estimation", "dataset_id": add_dataset(f"a,b,c\n{rows}")}
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["code"] == "incompatible-model"
    assert [item["column"] for item in problem["errors"]] == ["b", "c"]
    assert client.get("/v1/jobs").json()["items"] == []


def test_a_column_with_few_numbers_is_refused_unless_asked_for(
    client: TestClient, add_dataset: AddDataset
) -> None:
    rows = "\n".join(f"{1 + row},{row % 5},{row if row < 9 else ''}" for row in range(40))
    body = {"kind": "estimation", "dataset_id": add_dataset(f"a,b,c\n{rows}")}
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 422
    assert answer.json()["code"] == "incompatible-model"
    [reason] = answer.json()["errors"]
    assert (reason["column"], reason["pointer"], reason["count"]) == ("c", "/min_observed", 9)
    accepted = client.post("/v1/jobs", json={**body, "min_observed": 9})
    assert accepted.status_code == 202
    assert accepted.json()["spec"]["min_observed"] == 9


def test_unknown_data_set_is_404_with_a_pointer(client: TestClient) -> None:
    answer = client.post("/v1/jobs", json={"kind": "estimation", "dataset_id": "ds_x"})
    assert answer.status_code == 404
    assert answer.json()["errors"][0]["pointer"] == "/dataset_id"


def test_validation_says_what_would_run_and_stores_nothing(
    client: TestClient, add_dataset: AddDataset
) -> None:
    rows = "\n".join(
        f"{1 + row},{5 + row % 3},{cell}" for row, cell in enumerate([""] + [2, 3] * 9)
    )
    body = {"kind": "estimation", "dataset_id": add_dataset(f"a,b,c\n{rows}", truth=[["a", "b"]])}
    answer = client.post("/v1/jobs:validate", json=body)
    assert answer.status_code == 200
    plan = answer.json()
    assert plan["spec"]["variables"] == ["a", "b", "c"]
    assert plan["estimation"]["n_missing"] == 1
    assert plan["estimation"]["has_ground_truth"]
    assert plan["estimation"]["size"] == {
        "n_rows": 19,
        "n_variables": 3,
        "n_parameters": 10,
        "n_noise_rows": 190,
        "noise_bytes": 190 * 3 * 8,
    }
    assert "missing-cells" in [warning["code"] for warning in plan["warnings"]]
    assert client.get("/v1/jobs").json()["items"] == []


def test_validation_refuses_what_submission_refuses(
    client: TestClient, body: dict[str, Any]
) -> None:
    wrong = body | {"variables": ["a", "x"]}
    validated = client.post("/v1/jobs:validate", json=wrong).json()
    submitted = client.post("/v1/jobs", json=wrong).json()
    assert validated["errors"] == submitted["errors"] != []


def test_running_job_shows_its_progress(
    client: TestClient, database: Database, job_id: str, token: str
) -> None:
    with database.transaction() as session:
        leases.heartbeat(session, job_id, token, 60, Progress("fit", 0.25, 4, -2.5))
    answer = client.get(f"/v1/jobs/{job_id}")
    job = answer.json()
    assert (job["state"], job["attempt"], job["max_attempts"]) == ("running", 1, 3)
    updated_at = job["progress"].pop("updated_at")
    assert job["progress"] == {
        "stage": "fit",
        "fraction": 0.25,
        "iteration": 4,
        "objective": -2.5,
    }
    assert updated_at.endswith("Z")
    assert job["heartbeat_at"].endswith("Z")
    assert int(answer.headers["retry-after"]) >= 1


def test_job_that_has_succeeded_has_done_all_its_work(
    client: TestClient, database: Database, job_id: str, token: str
) -> None:
    with database.transaction() as session:
        leases.heartbeat(session, job_id, token, 60, Progress("export", 0.9, 4, None))
        leases.succeed(session, job_id, token)
    assert client.get(f"/v1/jobs/{job_id}").json()["progress"]["fraction"] == 1


def test_failed_job_is_200_with_the_reason_in_it(
    client: TestClient, database: Database, job_id: str, token: str
) -> None:
    problem = problem_document(ProblemCode.NON_FINITE_OBJECTIVE, "It became infinite.")
    with database.transaction() as session:
        leases.fail(session, job_id, token, problem)
    answer = client.get(f"/v1/jobs/{job_id}")
    assert answer.status_code == 200
    assert answer.json()["state"] == "failed"
    assert answer.json()["error"] == problem.model_dump(mode="json")
    assert "retry-after" not in answer.headers


def test_unchanged_job_is_not_sent_again(
    client: TestClient, database: Database, job_id: str
) -> None:
    address = f"/v1/jobs/{job_id}"
    etag = client.get(address).headers["etag"]
    known = {"If-None-Match": f'"other", W/{etag}'}
    unchanged = client.get(address, headers=known)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["etag"] == etag
    with database.transaction() as session:
        leases.claim(session, job_id, 60)
    assert client.get(address, headers=known).status_code == 200


def test_waiting_job_is_cancelled_at_once(client: TestClient, job_id: str) -> None:
    answer = client.put(f"/v1/jobs/{job_id}/cancellation")
    assert answer.status_code == 202
    assert answer.json()["state"] == "cancelled"
    assert answer.json()["finished_at"] is not None


def test_running_job_is_told_to_stop(client: TestClient, job_id: str, token: str) -> None:
    answer = client.put(f"/v1/jobs/{job_id}/cancellation")
    assert answer.status_code == 202
    assert answer.json()["state"] == "running"
    assert answer.json()["cancel_requested_at"] is not None
    # A second time changes nothing.
    assert client.put(f"/v1/jobs/{job_id}/cancellation").json() == answer.json()


def test_cancelling_a_finished_job_changes_nothing(
    client: TestClient, database: Database, job_id: str, token: str
) -> None:
    with database.transaction() as session:
        leases.succeed(session, job_id, token)
    before = client.get(f"/v1/jobs/{job_id}").json()
    answer = client.put(f"/v1/jobs/{job_id}/cancellation")
    assert answer.status_code == 200
    assert answer.json() == before


def test_job_in_a_final_state_can_be_deleted(client: TestClient, job_id: str) -> None:
    client.put(f"/v1/jobs/{job_id}/cancellation")
    assert client.delete(f"/v1/jobs/{job_id}").status_code == 204
    assert client.get(f"/v1/jobs/{job_id}").status_code == 404


def test_waiting_job_cannot_be_deleted(client: TestClient, job_id: str) -> None:
    answer = client.delete(f"/v1/jobs/{job_id}")
    assert answer.status_code == 409
    assert answer.json()["code"] == "job-not-terminal"
    assert client.get(f"/v1/jobs/{job_id}").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/jobs/job_x"),
        ("GET", "/v1/jobs/123e4567-e89b-12d3-a456-426614174000"),
        ("GET", "/v1/jobs/%00"),
        ("GET", "/v1/jobs/%FF"),
        ("GET", f"/v1/jobs/{'x' * 500}"),
        ("DELETE", "/v1/jobs/job_x"),
        ("PUT", "/v1/jobs/job_x/cancellation"),
        ("GET", "/v1/jobs/job_x/events"),
        ("GET", "/v1/jobs/job_x/result"),
    ],
)
def test_unknown_job_is_not_found(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not-found"


def test_more_requests_at_once_than_threads_all_get_an_answer(
    client: TestClient, body: dict[str, Any]
) -> None:
    # Uploads, such as that of the data set, have a thread of their own.
    earlier = set(threading.enumerate())
    # If one thread held the database's lock while it waited for another, this would never end.
    with ThreadPoolExecutor(60) as pool:
        answers = list(pool.map(lambda _: client.post("/v1/jobs", json=body), range(60)))
    assert {answer.status_code for answer in answers} == {202}
    begun = set(threading.enumerate()) - earlier
    assert sum("AnyIO" in thread.name for thread in begun) <= THREADS


def test_a_word_that_is_none_of_a_few_is_answered_with_the_words_of_the_api(
    client: TestClient, body: dict[str, Any]
) -> None:
    wrong = {**body, "estimator": {"kind": "mle", "penalty": 1, "penalty_kind": "l1"}}
    answer = client.post("/v1/jobs", json=wrong)
    assert answer.status_code == 422
    (item,) = answer.json()["errors"]
    assert item["pointer"] == "/estimator/penalty_kind"
    assert item["message"] == "Must be 'adaptive' or 'ridge'."
