"""What the database's clock says of keys, on both databases."""

import pytest
from sqlalchemy import update

from service.db.clock import now
from service.db.database import Database
from service.http.scopes import Scope
from service.keys import lifecycle, repository
from service.keys.records import ApiKeyRecord

DAY = 86_400.0


@pytest.fixture
def key_id(database: Database) -> str:
    """Return a key of the tenant `default` that was never used and does not expire."""
    with database.transaction() as session:
        made = lifecycle.create(session, "k" * 32, name="x", scopes=[Scope.READ], expires_at=None)
    return made.id


@pytest.mark.parametrize(
    ("column", "seconds", "works"),
    [("expires_at", DAY, True), ("expires_at", -DAY, False), ("revoked_at", -DAY, False)],
)
def test_a_key_works_until_it_expires_or_is_revoked(
    database: Database, key_id: str, column: str, seconds: float, works: bool
) -> None:
    with database.transaction() as session:
        assert repository.still_working(session, [key_id]) == {key_id}
        session.execute(update(ApiKeyRecord).values({column: now() + seconds}))
        assert (key_id in repository.still_working(session, [key_id])) == works
    with database.of("others").snapshot() as session:
        assert not repository.still_working(session, [key_id])


def test_a_use_is_noted_once_in_a_while(database: Database, key_id: str) -> None:
    def use(seconds: float) -> float:
        with database.transaction() as session:
            repository.note_use(session, key_id, seconds)
        with database.snapshot() as session:
            noted = session.get_one(ApiKeyRecord, key_id).last_used_at
        assert noted is not None
        return noted

    first = use(DAY)
    assert use(DAY) == first
    assert use(0.0) > first
