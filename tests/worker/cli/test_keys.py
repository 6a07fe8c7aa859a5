"""`vnce keys` in a data folder: the first key is made without one."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from typer.testing import Result

from service.app import create_app
from service.settings import Settings
from worker.embedded import key_secret

Vnce = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def status_of(folder: Path) -> Callable[[str, str], int]:
    """Return what the service on the folder answers to a token on a path."""

    def status(token: str, path: str) -> int:
        secret = SecretStr(key_secret.of_folder(folder))
        settings = Settings(database_url=f"sqlite:///{folder}/vnce.db", key_secret=secret)
        with TestClient(create_app(settings)) as client:
            return client.get(path, headers={"Authorization": f"Bearer {token}"}).status_code

    return status


def test_a_key_that_was_made_in_the_folder_works_until_it_is_revoked(
    vnce: Vnce, folder: Path, status_of: Callable[[str, str], int]
) -> None:
    made = vnce("keys", "create", "scripts", "--data", str(folder), "--days", "1")
    assert made.exit_code == 0
    token = made.stdout.strip()
    assert (status_of(token, "/v1/jobs"), status_of(token, "/v1/api-keys")) == (200, 403)
    listed = json.loads(vnce("keys", "list", "--data", str(folder), "--json").stdout)["items"]
    assert [(key["name"], key["scopes"]) for key in listed] == [("scripts", ["read", "submit"])]
    assert vnce("keys", "revoke", listed[0]["id"], "--data", str(folder)).exit_code == 0
    assert status_of(token, "/v1/jobs") == 401


def test_each_tenant_has_its_own_keys(vnce: Vnce, folder: Path) -> None:
    for tenant in ("soil-lab", "clinic"):
        made = vnce("keys", "create", "x", "--data", str(folder), "--tenant", tenant)
        assert made.exit_code == 0
    options = ("--data", str(folder), "--tenant", "clinic", "--json")
    listed = json.loads(vnce("keys", "list", *options).stdout)["items"]
    assert [key["tenant"] for key in listed] == ["clinic"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "x", "--tenant", "No Such Name"),
        ("create", ""),
        ("create", "x" * 201),
        ("create", "x", "--days", "0"),
        ("create", "x", "--days", "nan"),
        ("revoke", "key_unknown"),
    ],
)
def test_what_is_wrong_is_said(vnce: Vnce, folder: Path, arguments: tuple[str, ...]) -> None:
    result = vnce("keys", *arguments, "--data", str(folder))
    assert result.exit_code in (1, 2)
    assert isinstance(result.exception, SystemExit)  # nothing that would be shown as a traceback


def test_the_secret_is_readable_by_its_owner_alone(folder: Path) -> None:
    secret = key_secret.of_folder(folder)
    assert key_secret.of_folder(folder) == secret
    assert len(secret) == 64
    assert (folder / key_secret.FILE).stat().st_mode & 0o777 == 0o600


def test_a_secret_that_was_not_written_is_made(folder: Path) -> None:
    (folder / key_secret.FILE).touch()  # by a process that had no room, or was killed
    secret = key_secret.of_folder(folder)
    assert len(secret) == 64
    assert key_secret.of_folder(folder) == secret


def test_a_damaged_secret_makes_no_keys(vnce: Vnce, folder: Path) -> None:
    (folder / key_secret.FILE).write_text("a" * 31)
    result = vnce("keys", "create", "x", "--data", str(folder))
    assert result.exit_code == 1
    assert "is damaged" in result.output


def test_who_makes_the_secret_at_once_is_given_the_same(folder: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        secrets = set(pool.map(key_secret.of_folder, [folder] * 64))
    assert len(secrets) == 1


@pytest.mark.parametrize("key", ["vnce_…", "vnce\x01", "vnce\r\nX-Other: 1"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(
    vnce: Vnce, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("VNCE_API_KEY", key)
    result = vnce("keys", "list", "--url", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert "VNCE_API_KEY holds characters" in result.output
    assert "vnce_…" not in result.output


def test_a_name_gives_no_orders_to_the_terminal_that_lists_it(vnce: Vnce, folder: Path) -> None:
    assert vnce("keys", "create", "a\x9b31m", "--data", str(folder)).exit_code == 0
    listed = vnce("keys", "list", "--data", str(folder)).stdout
    assert "\x9b" not in listed
    assert r"a\x9b31m" in listed
