"""docker-compose.yml without Docker: its services in namespaces of their own, from its own words.

A container is what container.sh makes: a read-only root, the user and the tmpfs that the file or
the Dockerfile names, no capability. What the images would bring comes from this machine: system,
Python, nginx, PostgreSQL and Valkey. All share one network namespace that has loopback alone, and a
hosts file with the services' names.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.stack.containers.container import UNSHARE, Container, Image, shown
from tests.stack.containers.images import (
    ACCOUNTS,
    DEFAULT_COMMANDS,
    ENTRY_POINTS,
    ROOT,
    SYSTEM_PATH,
    build,
    etc,
    store_image,
    write_etc,
)
from worker.processes.die_with_parent import dying_with_parent

TOOLS = ("unshare", "nsenter", "setpriv", "ip", "bash")
STORES = ("postgres", "redis")
HEALTHY_SECONDS = 240


class Stack:
    """The file's services, started as `docker compose up` starts them."""

    def __init__(
        self, services: Mapping[str, Any], images: Mapping[str, Image], folder: Path, network: int
    ) -> None:
        self.services = services
        self.containers: dict[str, Container] = {}
        self._images = images
        self._folder = folder
        self._network = network
        self._num_runs = 0

    def up(self, name: str) -> None:
        """Start a service, once those that it depends on are as it wants them."""
        for needed, how in self.services[name].get("depends_on", {}).items():
            if needed not in self.containers:
                self.up(needed)
            if how["condition"] == "service_healthy":
                self.wait_until_healthy(needed)
            else:
                assert how["condition"] == "service_completed_successfully"
                assert self.containers[needed].wait() == 0, self.containers[needed].log
        command = self.services[name].get("command") or DEFAULT_COMMANDS[name]
        command = [*ENTRY_POINTS.get(name, ()), *command]
        self.containers[name] = self._start(name, name, command, {})

    def run(self, service: str, *command: str, **environment: str) -> Container:
        """Run a command to its end in a new container, as `docker compose run` does."""
        self._num_runs += 1
        name = f"{service}-run-{self._num_runs}"
        container = self._start(service, name, command, environment)
        try:
            container.wait()
        finally:
            container.kill()
        return container

    def restart(self, name: str) -> int:
        """Have a service end as `docker stop` does, start it anew; return its exit status."""
        grace = self.services[name].get("stop_grace_period", "10s")
        how = signal.Signals[self.services[name].get("stop_signal", "SIGTERM")]
        status = self.containers[name].stop(how, float(grace.removesuffix("s")))
        self.up(name)
        self.wait_until_healthy(name)
        return status

    def check(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run the service's health check once."""
        kind, *command = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        if command[0] == "redis-cli" and shutil.which("redis-cli") is None:
            # No wheel brings the image's client; what is left to ask is whether it listens.
            command = ["bash", "-c", "echo > /dev/tcp/127.0.0.1/6379"]
        return self.containers[name].run(*command)

    def wait_until_healthy(self, name: str) -> None:
        """Repeat the service's health check until it passes."""
        container = self.containers[name]
        deadline = time.monotonic() + HEALTHY_SECONDS
        while (checked := self.check(name)).returncode != 0:
            assert not container.has_ended, container.log
            assert time.monotonic() < deadline, f"{name}: {checked.stderr}\n{container.log}"
            time.sleep(0.2)

    def close(self) -> None:
        """End what still runs."""
        for container in self.containers.values():
            container.kill()

    def _start(
        self, service: str, name: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> Container:
        described, image = self.services[service], self._images[service]
        added = {key: str(text) for key, text in described.get("environment", {}).items()}
        mounts = [*_tmpfs(described), *image.mounts, *_files(described)]
        user = ACCOUNTS.get(described.get("user"), image.user)
        whole = Image(user, {**image.environment, **added, **environment}, mounts, image.folder)
        container = Container(name, whole, command, self._folder, self._network)
        container.wait_until_made()
        return container


def _tmpfs(service: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the mounts of the `tmpfs` and `shm_size` of a service; Docker's size is 64m."""
    shared = ("tmpfs", service.get("shm_size", "64m"), "/dev/shm")
    paths = (entry.partition(":size=") for entry in service["tmpfs"])
    return [shared, *(("tmpfs", size or "50%", path) for path, _, size in paths)]


def _files(service: Mapping[str, Any]) -> list[tuple[str, Path, str]]:
    """Return the mounts of the files of the repository that a service shows."""
    entries = (entry.split(":") for entry in service.get("volumes", ()))
    return [(how[0], ROOT / path, target) for path, target, *how in entries if path[0] == "."]


@pytest.fixture(scope="session")
def network() -> Iterator[int]:
    """Yield the id of a process whose network is loopback alone; skip where none can be made."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"containers need root and Linux tools; missing: {missing or 'root'}")
    probe = subprocess.run([*UNSHARE, "-c", "mount -t tmpfs probe /tmp"], capture_output=True)
    if probe.returncode != 0:
        pytest.skip(f"this machine allows no namespaces: {probe.stderr.decode()}")
    argv = dying_with_parent(
        ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"]
    )
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        yield holder.pid
        holder.kill()


@pytest.fixture(scope="session")
def api_venv(
    network: int, dockerfiles: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the /venv of the API's image, built as its Dockerfile says."""
    folder = tmp_path_factory.mktemp("api") / "image"
    return build(dockerfiles["docker/api.Dockerfile"].stages[0], folder)


@pytest.fixture(scope="module")
def stack(
    network: int,
    programs: Mapping[str, str],
    api_venv: Path,
    compose: Callable[[Mapping[str, str]], dict[str, Any]],
    given: Mapping[str, str],
    dockerfiles: Mapping[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """Yield the stack, up and healthy."""
    folder = tmp_path_factory.mktemp("stack")
    services = compose(given)["services"]
    write_etc(folder, {**ACCOUNTS, "vnce": dockerfiles["docker/worker.Dockerfile"].user})
    # The worker's image holds gigabytes: its /venv is the one that runs the tests.
    code = shown(
        *(ROOT / name for name in ("vnce", "service", "worker", "vnce_engine")), sys.prefix
    )
    files = {
        "docker/api.Dockerfile": [("ro", api_venv, "/venv")],
        "docker/worker.Dockerfile": [*code, ("ro", sys.prefix, "/venv")],
    }
    images = {name: store_image(name, folder) for name in STORES}
    # Its folder of templates is none of this machine's.
    shown_files = [*etc(folder), ("tmpfs", "1m", "/etc/nginx")]
    images["proxy"] = Image(ACCOUNTS["nginx"], {"PATH": SYSTEM_PATH}, shown_files)
    for name in services.keys() - images:
        path = services[name]["build"]["dockerfile"]
        mounts = [*shown(sys.base_prefix), *files[path], *etc(folder)]
        images[name] = Image(dockerfiles[path].user, dockerfiles[path].environment, mounts)
    with closing(Stack(services, images, folder, network)) as stack:
        for name in services:
            if name not in stack.containers:
                stack.up(name)
        for name, service in services.items():
            if "healthcheck" in service:
                stack.wait_until_healthy(name)
        yield stack
