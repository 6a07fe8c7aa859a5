"""`python -m service keys`: an operator makes, lists and revokes the keys of any tenant."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from service.commands.keys import main
from service.settings import MIN_HASH_KEY_LENGTH

# Runs the command; returns what it printed.
Run = Callable[..., str]


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Return the database of the client."""
    return sqlite_url


@pytest.fixture
def run(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.setenv("VNCE_DATABASE_URL", database_url)
    # As the client's.
    monkeypatch.setenv("VNCE_KEY_SECRET", "k" * MIN_HASH_KEY_LENGTH)

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["keys", *arguments])
        main()
        return capsys.readouterr().out

    return run


def test_a_key_is_made_listed_and_revoked(run: Run, client: TestClient) -> None:
    token = run("create", "scripts", "--tenant", "lab", "--days", "1").strip()
    headers = {"Authorization": f"Bearer {token}"}
    assert client.get("/v1/jobs", headers=headers).status_code == 200
    assert client.get("/v1/api-keys", headers=headers).status_code == 403
    listed = run("list", "--tenant", "lab")
    key_id, tenant, prefix, scopes = listed.split()[:4]
    assert tenant == "lab"
    assert prefix in token
    assert scopes == "read,submit"
    assert run("list", "--tenant", "default") == ""
    assert run("list") == listed  # everybody's
    run("revoke", key_id)
    assert client.get("/v1/jobs", headers=headers).status_code == 401
    assert "revoked" in run("list", "--tenant", "lab")


def test_a_name_gives_no_orders_to_the_terminal_that_lists_it(run: Run) -> None:
    run("create", "a\x9b31m")  # in some terminals the same as escape and a bracket
    assert run("list").endswith("  a\\x9b31m\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", ""),
        ("create", "x" * 201),
        ("create", "x", "--days", "0"),
        ("create", "x", "--days", "nan"),
        ("create", "x", "--tenant", "Lab"),
        ("create", "x", "--scope", "write"),
        ("revoke", "key_unknown"),
    ],
)
def test_what_cannot_be_done_is_said_and_makes_no_key(run: Run, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(*arguments)
    assert caught.value.code != 0
    assert run("list") == ""


def test_a_database_without_tables_is_named_as_the_reason(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNCE_DATABASE_URL", f"sqlite:///{tmp_path}/new.db")
    with pytest.raises(SystemExit, match=r"migrated.*no such table"):
        run("create", "x")


def test_a_token_that_could_not_be_stored_is_not_shown(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(session: Session) -> None:
        raise OperationalError("COMMIT", None, OSError("disk full"))

    event.listen(Session, "before_commit", fail)
    try:
        with pytest.raises(SystemExit, match="disk full"):
            run("create", "scripts")
    finally:
        event.remove(Session, "before_commit", fail)
    assert capsys.readouterr().out == ""
    assert run("list") == ""
