"""Migrations, from every earlier revision and back, leave all data as it was."""

from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    create_engine,
    insert,
    select,
)

from service.db import schema
from service.db.database import Database
from service.results import repository as results

pytestmark = [pytest.mark.integration, pytest.mark.faults]

NUM_ROWS = 3
# Columns that some revision gave another name.
RENAMED = {"partial_correlation": "scaled_interaction"}
# Tables whose rows some revision carried into others: of which messages, a test of its own says.
GONE = {"outbox"}
Rows = dict[str, list[dict[str, Any]]]


def revisions() -> list[str]:
    """Return all revisions, oldest first."""
    with create_engine("sqlite://").connect() as connection:
        script = ScriptDirectory.from_config(schema.configuration(connection))
        return [step.revision for step in script.walk_revisions()][::-1]


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """Yield a database of either kind without tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'vnce.db'}"
    else:
        url = request.getfixturevalue("new_postgres_url")
    database = Database(url)
    yield database
    database.dispose()


def tables(connection: Connection) -> list[Table]:
    """Return the tables that there are, each after those that it refers to."""
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def value(column: Column[Any], row: int) -> Any:
    """Return what a row holds in a column: rows differ, and refer to rows of the same number."""
    if column.foreign_keys:
        [key] = column.foreign_keys
        return value(key.column, row)
    match column.type:
        case Boolean():
            return row % 2 == 0
        case Integer():
            return row
        case String(length=length):
            return f"{column.table.name}.{column.name}.{row}"[-(length or 100) :]
        case LargeBinary():
            return bytes([row, 0, 255])
        case JSON():
            return {"name": "水", "row": row, "value": 0.1}
        case _:
            return row + 0.123456789012


def fill(connection: Connection) -> None:
    for table in tables(connection):
        for row in range(1, NUM_ROWS + 1):
            values = {column.name: value(column, row) for column in table.columns}
            if table.name == "results":
                # A migration that changes documents writes this anew.
                values["sha256"] = results.hash_of(values["document"])
            connection.execute(insert(table), values)


def read(connection: Connection) -> Rows:
    return {
        table.name: [
            dict(row._mapping)
            for row in connection.execute(select(table).order_by(*table.primary_key.columns))
        ]
        for table in tables(connection)
    }


@pytest.mark.parametrize("revision", revisions()[:-1])
def test_going_to_the_newest_revision_and_back_keeps_every_value(
    empty_database: Database, revision: str
) -> None:
    with empty_database.transaction() as session:
        command.upgrade(schema.configuration(session.connection()), revision)
        fill(session.connection())
        before = read(session.connection())
    assert all(len(rows) == NUM_ROWS for rows in before.values())

    with empty_database.transaction() as session:
        command.upgrade(schema.configuration(session.connection()), "head")
        after = read(session.connection())
    kept = {
        name: [
            {
                column: row[column if column in row else RENAMED[column]]
                for column in before[name][0]
            }
            for row in after[name]
        ]
        for name in before.keys() - GONE
    }
    before = {name: before[name] for name in kept}
    assert kept == before

    with empty_database.transaction() as session:
        command.downgrade(schema.configuration(session.connection()), revision)
        found = read(session.connection())
    assert {name: found[name] for name in before} == before
