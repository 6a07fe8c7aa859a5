"""A submission makes one job with everything it needs, or nothing."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import func, select

from service.datasets.readers.refusals import MAX_CELL_CHARACTERS, MAX_ITEMS
from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT
from service.http.problems import ProblemCode, ProblemError
from service.jobs import leases, lifecycle, planning, submission
from service.jobs.records import JobRecord, JobState
from service.jobs.specs import JobCreate
from service.jobs.specs.estimation import EstimationSpec
from service.jobs.specs.simulation import SimulationSpec
from service.jobs.submission import SubmissionLimits, Submitter
from service.jobs.vocabulary import SimulatedGraph
from tests.service.jobs.messages import to_be_sent
from tests.waiting import PATIENCE_SECONDS

AddDataset = Callable[..., str]
TABLE = "a,b,c\n" + "\n".join(f"{1 + row},{5 + row % 3},{2 + row % 5}" for row in range(20))

LIMITS = SubmissionLimits(max_attempts=3, max_unfinished_jobs=100)
NOBODY = Submitter(api_key_id=None, request_id=None)


def request(dataset_id: str, **choices: Any) -> EstimationSpec:
    return EstimationSpec.model_validate(
        {"kind": "estimation", "dataset_id": dataset_id, **choices}
    )


def submit(database: Database, body: JobCreate, key: str | None = None) -> tuple[JobRecord, bool]:
    return submission.accept(database, body, LIMITS, NOBODY, key)


def count_jobs(database: Database) -> int:
    with database.snapshot() as session:
        return session.execute(select(func.count(JobRecord.id))).scalar_one()


def test_job_comes_with_its_wake_up_message(database: Database, add_dataset: AddDataset) -> None:
    job, is_new = submit(database, request(add_dataset(TABLE)))
    assert is_new
    assert job.state == JobState.QUEUED
    assert to_be_sent(database) == [job.id]


def test_stored_spec_has_every_choice_made(database: Database, add_dataset: AddDataset) -> None:
    job, _ = submit(database, request(add_dataset(TABLE), variables=["c", "a"], tag="mine"))
    assert job.spec["variables"] == ["a", "c"]
    assert job.spec["seed"] == 0
    assert job.tag == "mine"
    with database.transaction() as session:
        taken = leases.claim(session, job.id, 30)
    assert taken is not None
    assert taken.spec.model_dump(mode="json") == job.spec


@pytest.mark.slow
def test_given_seed_is_kept(database: Database, add_dataset: AddDataset) -> None:
    job, _ = submit(database, request(add_dataset(TABLE), seed=5))
    assert job.spec["seed"] == 5


@pytest.mark.parametrize(
    ("chosen", "linear", "penalty"), [({}, "zero", None), ({"penalty": 0.5}, "zero", 0.5)]
)
def test_spec_of_the_papers_recipe_says_what_runs(
    database: Database,
    add_dataset: AddDataset,
    chosen: dict[str, Any],
    linear: str,
    penalty: float | None,
) -> None:
    estimator = {"kind": "vnce", "preset": "paper", **chosen}
    job, _ = submit(database, request(add_dataset(TABLE), estimator=estimator))
    assert job.spec["model"]["linear"] == linear
    assert job.spec["estimator"]["penalty"] == penalty
    assert job.spec["estimator"]["noise_draws"] == "random"


def test_true_edges_among_the_variables_are_copied(
    database: Database, add_dataset: AddDataset
) -> None:
    dataset_id = add_dataset(TABLE, truth=[["a", "b"], ["a", "c"]])
    job, _ = submit(database, request(dataset_id, variables=["a", "c"]))
    assert job.ground_truth == [["a", "c"]]


def test_composed_spelling_finds_the_decomposed_column(
    database: Database, add_dataset: AddDataset
) -> None:
    table = TABLE.replace("a,b,c", "cafe\u0301,b,c")
    job, _ = submit(database, request(add_dataset(table), variables=["caf\u00e9", "b"]))
    assert job.spec["variables"] == ["caf\u00e9", "b"]


def test_names_are_found_as_the_header_spells_them(
    database: Database, add_dataset: AddDataset
) -> None:
    table = TABLE.replace("a,b,c", "a, b, c")
    job, _ = submit(database, request(add_dataset(table), variables=["a", " b"]))
    assert job.spec["variables"] == ["a", "b"]


def test_the_answer_to_many_or_long_wrong_names_is_short(
    database: Database, add_dataset: AddDataset
) -> None:
    wrong = ["x" * 100_000, *map(str, range(1_000))]
    with pytest.raises(ProblemError) as refused:
        submit(database, request(add_dataset(TABLE), variables=wrong))
    assert len(refused.value.errors) == MAX_ITEMS
    assert max(len(item.column or "") for item in refused.value.errors) == MAX_CELL_CHARACTERS


def test_unknown_and_repeated_names_are_refused_by_position(
    database: Database, add_dataset: AddDataset
) -> None:
    with pytest.raises(ProblemError) as refused:
        submit(database, request(add_dataset(TABLE), variables=["a", "x", "b", "a"]))
    assert refused.value.code == ProblemCode.INCOMPATIBLE_MODEL
    assert [item.pointer for item in refused.value.errors] == ["/variables/1", "/variables/3"]
    assert count_jobs(database) == 0


def test_unknown_data_set_is_not_found(database: Database) -> None:
    with pytest.raises(ProblemError) as refused:
        submit(database, request("ds_unknown"))
    assert refused.value.code == ProblemCode.NOT_FOUND


def test_same_key_and_body_find_the_first_job(database: Database, add_dataset: AddDataset) -> None:
    body = request(add_dataset(TABLE))
    first, _ = submit(database, body, key="k")
    again, is_new = submit(database, body, key="k")
    assert (again.id, is_new) == (first.id, False)
    assert count_jobs(database) == len(to_be_sent(database)) == 1


def test_same_key_with_another_body_is_refused(database: Database, add_dataset: AddDataset) -> None:
    dataset_id = add_dataset(TABLE)
    submit(database, request(dataset_id), key="k")
    with pytest.raises(ProblemError) as refused:
        submit(database, request(dataset_id, seed=1), key="k")
    assert refused.value.code == ProblemCode.IDEMPOTENCY_KEY_REUSED
    assert count_jobs(database) == 1


def test_key_of_a_deleted_job_can_be_used_again(
    database: Database, add_dataset: AddDataset
) -> None:
    body = request(add_dataset(TABLE))
    first, _ = submit(database, body, key="k")
    with database.transaction() as session:
        lifecycle.request_cancellation(session, first.id)
        lifecycle.remove(session, first.id)
    second, is_new = submit(database, body, key="k")
    assert is_new
    assert second.id != first.id


def test_how_a_body_is_written_makes_no_other_body() -> None:
    written = EstimationSpec.model_validate_json(
        '{"kind":"estimation","dataset_id":"ds_1","tag":"t"}'
    )
    otherwise = EstimationSpec.model_validate_json(
        '{"tag": "\\u0074", "dataset_id": "ds_1", "kind": "estimation"}'
    )
    changed = otherwise.model_copy(update={"tag": "u"})
    assert submission.hash_of(written) == submission.hash_of(otherwise)
    assert submission.hash_of(written) != submission.hash_of(changed)


def test_twenty_simultaneous_submissions_under_one_key_make_one_job(
    database: Database, add_dataset: AddDataset
) -> None:
    body = request(add_dataset(TABLE))
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda _: submit(database, body, key="k"), range(20)))
    assert len({job.id for job, _ in made}) == 1
    assert sum(is_new for _, is_new in made) == 1
    assert count_jobs(database) == len(to_be_sent(database)) == 1


@pytest.mark.integration
@pytest.mark.parametrize("seed", [7, 8], ids=["same body", "another body"])
def test_of_two_submissions_that_both_found_no_job_one_makes_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    # SQLite's writers come one by one, and the second finds the first one's job.
    database = Database(postgres_url).of(DEFAULT_TENANT)
    bodies = [SimulationSpec(graph=SimulatedGraph.RING, seed=number) for number in (7, seed)]
    plan, both = planning.plan, threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def plan_with_the_other(*arguments: Any) -> Any:
        both.wait()
        return plan(*arguments)

    monkeypatch.setattr(planning, "plan", plan_with_the_other)
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(submit, database, body, "k") for body in bodies]
    refused = [answer.exception() for answer in answers if answer.exception()]
    made = [answer.result() for answer in answers if not answer.exception()]
    assert sum(is_new for _, is_new in made) == 1
    assert len({job.id for job, _ in made}) == 1
    codes = [error.code for error in refused if isinstance(error, ProblemError)]
    assert codes == ([] if seed == 7 else [ProblemCode.IDEMPOTENCY_KEY_REUSED])
    assert len(refused) == len(codes)
    assert count_jobs(database) == 1
    database.dispose()
