"""Migrations lead to exactly the tables that the code declares."""

import hashlib
from typing import Any

import pytest
from alembic import command
from sqlalchemy import JSON, column, insert, inspect, select, table, text
from sqlalchemy.orm import Session

from service.db import blobs, schema
from service.db.database import Database
from service.jobs import outbox
from service.jobs.records import IdempotencyRecord, JobRecord
from service.jobs.result_records import ArtefactRecord, EdgeRecord, ResultRecord
from service.results import repository as results
from tests.tables import METADATA


@pytest.fixture
def database_url(database_url: str, request: pytest.FixtureRequest) -> str:
    """Return the URL of a migrated database that a test may spoil."""
    if not database_url.startswith("postgresql"):
        return database_url
    url = str(request.getfixturevalue("new_postgres_url"))
    schema.upgrade(url)
    return url


def test_newest_revision_has_the_tables_of_the_records(database: Database) -> None:
    with database.transaction() as session:
        configuration = schema.configuration(session.connection())
        configuration.attributes["metadata"] = METADATA
        command.check(configuration)


def test_database_at_the_newest_revision_is_current(database: Database) -> None:
    assert schema.is_current(database)


def test_database_of_another_revision_is_not_current(database: Database) -> None:
    with database.transaction() as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'older'"))
    assert not schema.is_current(database)


def test_upgrading_twice_changes_nothing(database: Database, database_url: str) -> None:
    schema.upgrade(database_url)
    assert schema.is_current(database)


def test_downgrade_leaves_no_table(database: Database) -> None:
    with database.transaction() as session:
        connection = session.connection()
        command.downgrade(schema.configuration(connection), "base")
        assert set(METADATA.tables) & set(inspect(connection).get_table_names()) == set()


def migrate(database: Database, revision: str) -> None:
    go = command.upgrade if revision == "head" else command.downgrade
    with database.transaction() as session:
        go(schema.configuration(session.connection()), revision)


# What every revision knows of jobs.
JOBS = table(
    "jobs",
    *map(column, ("id", "kind", "state", "created_at", "woken_at", "attempt", "max_attempts")),
    column("spec", JSON),
)
OUTBOX = table("outbox", *map(column, ("id", "job_id", "created_at")))


def add_old_job(session: Session, job_id: str, spec: dict[str, Any], state: str = "queued") -> None:
    values = {"kind": "estimation", "state": state, "spec": spec, "attempt": 1, "max_attempts": 3}
    session.execute(insert(JOBS).values(id=job_id, created_at=1.0, woken_at=1.0, **values))


def specs_of(session: Session) -> dict[str, dict[str, Any]]:
    return {row.id: row.spec for row in session.execute(select(JOBS.c.id, JOBS.c.spec))}


def test_migrations_back_and_forth_keep_every_row(database: Database) -> None:
    migrate(database, "0001")
    with database.transaction() as session:
        add_old_job(session, "job_1", {}, "succeeded")
        session.execute(
            text(
                "INSERT INTO results (job_id, created_at, document, sha256)"
                " VALUES ('job_1', 1, '{\"names\": [\"水\"]}', 'abc')"
            )
        )
    for revision in ("head", "0001", "head"):
        migrate(database, revision)
        with database.snapshot() as session:
            rows = session.execute(select(ResultRecord.job_id, ResultRecord.document)).all()
        assert [(row.job_id, row.document["names"]) for row in rows] == [("job_1", ["水"])]


def test_stored_networks_have_no_limit_of_observed_cells_and_mixtures_no_such_field(
    database: Database,
) -> None:
    migrate(database, "0008")
    with database.transaction() as session:
        for job_id, model in (("job_1", "gaussian"), ("job_2", "mixture")):
            add_old_job(session, job_id, {"model": {"kind": model}}, "succeeded")
    for revision in ("head", "0008", "head"):
        migrate(database, revision)
        with database.snapshot() as session:
            specs = specs_of(session)
        limits = [specs[job_id].get("min_observed") for job_id in ("job_1", "job_2")]
        assert limits == [1 if revision == "head" else None, None]


def test_stored_networks_lose_the_choice_of_a_definite_k_and_keep_their_kind_of_penalty(
    database: Database,
) -> None:
    migrate(database, "0010")
    old = {"kind": "vnce", "penalty_kind": "adaptive", "positive_definite": "barrier"}
    specs = {
        "job_1": {"model": {"kind": "gaussian"}, "estimator": old},
        "job_2": {"model": {"kind": "mixture"}, "estimator": {"kind": "vnce"}},
        "job_3": {"model": {"kind": "gaussian"}, "estimator": {"kind": "gaussian-em"}},
    }
    with database.transaction() as session:
        for job_id, spec in specs.items():
            add_old_job(session, job_id, spec)
    for revision in ("head", "0010", "head"):
        migrate(database, revision)
        with database.snapshot() as session:
            stored = specs_of(session)
        # What it was is not known any more; "warn" is what it would have been without a word.
        definite = {} if revision == "head" else {"positive_definite": "warn"}
        estimator = {"kind": "vnce", "penalty_kind": "adaptive", **definite}
        assert stored == {**specs, "job_1": {**specs["job_1"], "estimator": estimator}}


def test_an_open_kind_of_penalty_is_adaptive_to_earlier_releases(database: Database) -> None:
    path = [{"kind": "adaptive", "strength": 1.0}, {"kind": "centred-ridge", "strength": 3.0}]
    document = {"penalty": {"kind": "auto", "fitted_kind": "centred-ridge", "path": path}}
    estimator = {"kind": "nce", "penalty_kind": "auto"}
    spec = {"model": {"kind": "truncated-gaussian"}, "estimator": estimator}
    with database.transaction() as session:
        session.add(JobRecord(id="job_1", kind="estimation", spec=spec, max_attempts=3))
        session.add(ResultRecord(job_id="job_1", document=document, sha256="00"))
    migrate(database, "0010")
    with database.snapshot() as session:
        [spec] = specs_of(session).values()
        assert spec["estimator"]["penalty_kind"] == "adaptive"
        [result] = session.scalars(select(ResultRecord))
        penalty = result.document["penalty"]
    assert penalty["kind"] == "adaptive"
    assert penalty["path"] == [{"strength": 1.0}, {"strength": 3.0}]
    assert result.sha256 == results.hash_of(result.document)


def test_a_document_that_a_migration_changes_has_the_hash_that_its_writer_would_give_it(
    database: Database,
) -> None:
    migrate(database, "0002")
    penalty = '{"kind": "ridge", "strength": 0.3, "path": []}'
    with database.transaction() as session:
        add_old_job(session, "job_1", {}, "succeeded")
        session.execute(
            text(
                "INSERT INTO results (job_id, created_at, document, sha256)"
                f" VALUES ('job_1', 1, '{{\"z\": \"水\", \"penalty\": {penalty}}}', 'abc')"
            ).execution_options(no_parameters=True)
        )
    hashes = []
    for revision in ("head", "0002", "head"):
        migrate(database, revision)
        with database.snapshot() as session:
            row = session.execute(select(ResultRecord.document, ResultRecord.sha256)).one()
        assert ("stability" in row.document) == (revision == "head")
        assert row.sha256 == results.hash_of(row.document)
        hashes.append(row.sha256)
    assert hashes[0] == hashes[2] != hashes[1]


def test_what_ranks_pairs_gets_its_name_in_documents_curves_and_files(
    database: Database,
) -> None:
    migrate(database, "0008")
    scores = [{"score": "abs_precision"}, {"score": "abs_partial_correlation", "auc": 0.5}]
    with database.transaction() as session:
        add_old_job(session, "job_1", {})
        session.add(ResultRecord(job_id="job_1", document={"scores": scores}, sha256="00"))
        blob = blobs.store(session, b'{"score":"abs_partial_correlation","auc":0.5}')
        session.flush()
        name = "roc/abs_partial_correlation.json"
        session.add(ArtefactRecord(job_id="job_1", name=name, media_type="x", blob_id=blob.id))
        session.execute(
            text(
                "INSERT INTO edges (job_id, rank, source, target, precision, partial_correlation,"
                " selected, n_pairwise) VALUES ('job_1', 1, 'a', 'b', -4.0, 4.08, true, 9)"
            )
        )
        before = blob.sha256
    migrate(database, "head")
    with database.snapshot() as session:
        [result] = session.scalars(select(ResultRecord))
        assert [score["score"] for score in result.document["scores"]] == [
            "abs_precision",
            "abs_scaled_interaction",
        ]
        assert result.sha256 == results.hash_of(result.document)
        [(artefact, blob)] = results.files(session, "job_1")
        assert artefact.name == "roc/abs_scaled_interaction.json"
        content = blobs.load(session, blob.id)
        assert content == b'{"score":"abs_scaled_interaction","auc":0.5}'
        assert (blob.size, blob.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert [edge.scaled_interaction for edge in session.scalars(select(EdgeRecord))] == [4.08]
    migrate(database, "0008")
    with database.snapshot() as session:
        [blob] = session.scalars(select(blobs.BlobRecord))
        assert blob.sha256 == before
    migrate(database, "head")


def test_going_back_before_tenants_keeps_their_jobs_and_the_newer_of_equal_idempotency_keys(
    database_url: str,
) -> None:
    database = Database(database_url)
    for created_at, tenant in enumerate(("lab-b", "lab-a"), start=1):
        with database.of(tenant).transaction() as session:
            job_id = f"job_{tenant}"
            session.add(JobRecord(id=job_id, kind="estimation", spec={}, max_attempts=3))
            session.flush()
            session.add(
                IdempotencyRecord(key="k", job_id=job_id, body_sha256="x", created_at=created_at)
            )
    for revision in ("0003", "head"):
        migrate(database, revision)
    with database.snapshot() as session:
        jobs = session.execute(select(JobRecord.id, JobRecord.tenant).order_by(JobRecord.id)).all()
        keys = session.execute(select(IdempotencyRecord.tenant, IdempotencyRecord.job_id)).all()
    database.dispose()
    assert jobs == [("job_lab-a", "default"), ("job_lab-b", "default")]
    assert keys == [("default", "job_lab-a")]


def test_messages_that_wait_to_be_sent_are_carried_into_the_rows_of_their_jobs_and_back(
    database: Database,
) -> None:
    migrate(database, "0011")
    states = {"job_late": "queued", "job_early": "queued", "job_sent": "queued"}
    states |= {"job_parent": "running", "job_held": "running", "job_ended": "succeeded"}
    with database.transaction() as session:
        for job_id, state in states.items():
            add_old_job(session, job_id, {}, state)
        session.execute(text("UPDATE jobs SET is_split = true WHERE id = 'job_parent'"))
        session.execute(text("UPDATE jobs SET lease_token = 'lease' WHERE id = 'job_held'"))
        session.execute(text("UPDATE jobs SET woken_at = 2 WHERE id = 'job_early'"))
        session.execute(text("UPDATE jobs SET woken_at = 3 WHERE id <> 'job_early'"))
        messages = {"job_early": 2.5, "job_late": 3.5, "job_parent": 4.0}
        useless = {"job_held": 1.0, "job_ended": 1.0}
        for job_id, created_at in (messages | useless).items():
            session.execute(insert(OUTBOX).values(job_id=job_id, created_at=created_at))
    migrate(database, "head")
    with database.snapshot() as session:
        jobs = {job.id: job for job in session.scalars(select(JobRecord))}
    assert {job_id: job.send_after for job_id, job in jobs.items() if job.send_after} == messages
    assert {job_id for job_id, job in jobs.items() if job.sent_at == 3} == {"job_sent"}
    migrate(database, "0011")
    with database.snapshot() as session:
        rows = session.execute(select(OUTBOX.c.job_id, OUTBOX.c.created_at).order_by(OUTBOX.c.id))
        assert [(row.job_id, row.created_at) for row in rows] == [
            ("job_early", 2.5),
            ("job_late", 3.5),
            ("job_parent", 4.0),
        ]
    migrate(database, "head")
    with database.transaction() as session:
        assert outbox.reserve(session, 10).job_ids == ["job_early", "job_late", "job_parent"]
