"""The stack of docker-compose.yml: what it promises, and its own commands run as it runs them."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest
import yaml
from sqlalchemy import make_url

from worker import valkey
from worker.processes import Command, ManagedProcess, stop

FILE = Path(__file__).parents[2] / "docker-compose.yml"
# Needs escaping wherever it might be pasted into a URL.
GIVEN = {"POSTGRES_PASSWORD": "p@ss:w/rd %41", "VNCE_KEY_SECRET": "0123456789abcdef" * 4}
OURS = {"api", "worker", "dispatcher", "migrate"}
STORES = {"postgres", "redis"}


def substitute(value: Any, given: dict[str, str]) -> Any:
    """Fill in `${NAME:-default}` and `${NAME:?message}` as Compose does."""
    if isinstance(value, dict):
        return {key: substitute(entry, given) for key, entry in value.items()}
    if isinstance(value, list):
        return [substitute(entry, given) for entry in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name, kind, text = match.groups()
        if name in given:
            return given[name]
        if kind == ":?":
            raise KeyError(f"{name}: {text}")
        return text

    return re.sub(r"\$\{(\w+)(:-|:\?)([^}]*)\}", fill, value)


@pytest.fixture
def services() -> dict[str, Any]:
    described = substitute(yaml.safe_load(FILE.read_text()), GIVEN)
    services: dict[str, Any] = described["services"]
    return services


def test_the_stack_has_every_part(services: dict[str, Any]) -> None:
    assert set(services) == OURS | STORES


@pytest.mark.parametrize("name", GIVEN)
def test_no_secret_has_a_default(name: str) -> None:
    others = {key: value for key, value in GIVEN.items() if key != name}
    with pytest.raises(KeyError, match=f"{name}: set it"):
        substitute(yaml.safe_load(FILE.read_text()), others)


def test_every_container_is_unprivileged_read_only_and_bounded(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["pids_limit"], name
        assert service["mem_limit"], name
    for name in STORES:
        assert services[name]["user"] == name
    for name in OURS:
        dockerfile = FILE.parent / services[name]["build"]["dockerfile"]
        assert dockerfile.read_text().rstrip().endswith("USER 10001:10001")


def test_what_stays_up_is_checked_and_what_it_needs_is_waited_for(services: dict[str, Any]) -> None:
    assert all("healthcheck" in services[name] for name in (OURS | STORES) - {"migrate"})
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in OURS - {"migrate"}:
        assert services[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }


def test_only_the_api_is_reached_from_outside(services: dict[str, Any]) -> None:
    described = yaml.safe_load(FILE.read_text())
    assert described["networks"]["stores"] == {"internal": True}
    assert [name for name, service in services.items() if "ports" in service] == ["api"]
    assert all(services[name]["networks"] == ["stores"] for name in set(services) - {"api"})


class Stack:
    """The file's services as processes of this machine, under its addresses for their names."""

    def __init__(self, services: dict[str, Any], folder: Path, postgres: str) -> None:
        self._services = services
        self._folder = folder
        self.api_port, redis_port = free_port(), free_port()
        address = make_url(postgres)
        self._addresses = {
            "@postgres:5432": f"@{address.host}:{address.port}",
            "//redis:6379": f"//127.0.0.1:{redis_port}",
            ":8000": f":{self.api_port}",
            # What is a container's own there is this test's here.
            services["worker"]["tmpfs"][0]: str(folder),
        }
        self._redis_here = ["--port", str(redis_port), "--dir", str(folder)]

    def command(self, name: str, argv: list[str] | None = None) -> Command:
        """Return a service's command, or `argv` run beside it, with the service's environment."""
        service = self._services[name]
        environment = {
            key: self._here(str(value)) for key, value in service.get("environment", {}).items()
        }
        environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        words = [self._here(word) for word in argv or service["command"]]
        if name == "api":
            words = [str(self.api_port) if word == "8000" else word for word in words]
        if name == "redis":
            server = valkey.command(self._folder / "unused", self._folder)[0]
            words = [server, *words[1:], *self._redis_here]
        return Command(name, words, environment)

    def start(self, name: str) -> ManagedProcess:
        """Start a service."""
        return ManagedProcess(self.command(name), self._folder / f"{name}.log")

    def run(self, name: str, argv: list[str] | None = None) -> int:
        """Run a service's command, or `argv` beside it, to its end; return the exit status."""
        command = self.command(name, argv)
        environment = {**os.environ, **command.environment}
        return subprocess.run(command.argv, env=environment, timeout=60).returncode

    def make_key(self) -> str:
        """Return the token of a new key, made as the file says."""
        command = self.command("migrate", ["python", "-m", "service.keys", "create", "test"])
        environment = {**os.environ, **command.environment}
        done = subprocess.run(
            command.argv, env=environment, timeout=60, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def is_healthy(self, name: str) -> bool:
        """Run the service's health check."""
        kind, *argv = self._services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return self.run(name, argv) == 0

    def _here(self, text: str) -> str:
        for there, here in self._addresses.items():
            text = text.replace(there, here)
        return text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def empty_postgres(postgres_server: str) -> Iterator[str]:
    """Yield the server's URL while it has the role and the empty database that the file names."""
    conninfo = make_url(postgres_server).set(drivername="postgresql")
    with psycopg.connect(conninfo.render_as_string(False), autocommit=True) as connection:
        connection.execute("CREATE ROLE vnce LOGIN")
        connection.execute("CREATE DATABASE vnce OWNER vnce")
        yield postgres_server
        connection.execute("DROP DATABASE vnce WITH (FORCE)")
        connection.execute("DROP ROLE vnce")


@pytest.mark.integration
def test_every_service_runs_by_its_own_command_and_a_job_goes_through(
    services: dict[str, Any],
    empty_postgres: str,
    tmp_path: Path,
    open_api: Callable[[str], Any],
    small_table: np.ndarray,
) -> None:
    stack = Stack(services, tmp_path, empty_postgres)
    with ExitStack() as cleanup:
        redis = stack.start("redis")
        cleanup.callback(stop, [redis], 10)
        assert stack.run("migrate") == 0
        ours = [stack.start(name) for name in ("worker", "dispatcher", "api")]
        cleanup.callback(stop, ours, 20)

        api = open_api(f"http://127.0.0.1:{stack.api_port}")
        deadline = time.monotonic() + 30
        while not is_ready(api.http):
            assert time.monotonic() < deadline, ours[2].failure("was not ready")
            time.sleep(0.1)
        assert api.http.get("/v1/jobs").status_code == 401
        api.http.headers["Authorization"] = f"Bearer {stack.make_key()}"
        job_id = api.submit(api.upload(small_table), penalty=1.0)
        assert api.wait(job_id, "succeeded", "failed")["state"] == "succeeded"
        assert all(stack.is_healthy(name) for name in ("api", "worker", "dispatcher"))

        began = time.monotonic()
        stop(ours, seconds=20)
        grace = float(services["worker"]["stop_grace_period"].removesuffix("s"))
        assert time.monotonic() - began < min(10, grace)


def is_ready(http: httpx.Client) -> bool:
    try:
        return bool(http.get("/readyz").json()["status"] == "ready")
    except httpx.TransportError:
        return False
