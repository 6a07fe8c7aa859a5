"""The stack's proxy as a process: Debian's nginx with the files that docker-compose.yml mounts.

They are filled in as the image's entry point does, by `envsubst` and the file's own variables; a
test replaces those that it needs shorter, smaller or elsewhere.
"""

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.embedded_postgres import free_port
from tests.served import Served, served_api
from tests.waiting import PATIENCE_SECONDS

TEMPLATES = Path(__file__).parents[3] / "docker" / "nginx"
NEVER = "3600"
# Uploads and JSON, to the API and to the proxy.
LIMITS = {"VNCE_MAX_BODY_BYTES": "200000", "VNCE_MAX_JSON_BYTES": "1000000"}

Proxy = Callable[..., AbstractContextManager[Served]]


@pytest.fixture(scope="session")
def start_proxy(
    programs: dict[str, str], compose: Callable[[Mapping[str, str]], Any], given: dict[str, str]
) -> Proxy:
    """Return a function that runs the proxy before a port, with variables of one's own."""
    whole = compose(given)["services"]["proxy"]["environment"]
    described = {name: text for name, text in whole.items() if name.startswith("VNCE_")}

    @contextmanager
    def start(
        folder: Path,
        api_port: int,
        *templates: str,
        replaced: tuple[str, str] = ("", ""),
        **own: str,
    ) -> Iterator[Served]:
        folder.mkdir(exist_ok=True)
        port = free_port()
        here = {"VNCE_API": f"127.0.0.1:{api_port}", "VNCE_PROXY_PORT": f"127.0.0.1:{port}"}
        variables = described | here | own
        for template in ("nginx.conf", *templates):
            filled = subprocess.run(
                [programs["envsubst"], "".join(f"${{{name}}}" for name in variables)],
                input=(TEMPLATES / f"{template}.template").read_text(),
                env=variables,
                capture_output=True,
                text=True,
                check=True,
            )
            assert replaced[0] in filled.stdout
            (folder / template).write_text(filled.stdout.replace(*replaced))
        # Its last words are of no effect unless the tests are run by root.
        options = ("-p", f"{folder}/", "-c", f"{folder}/nginx.conf", "-g", "daemon off; user root;")
        with (folder / "access.log").open("ab") as access, (folder / "error.log").open("wb") as log:
            process = subprocess.Popen([programs["nginx"], *options], stdout=access, stderr=log)
        proxy = Served(port, process, folder)
        try:
            _wait_until_it_listens(proxy)
            yield proxy
        finally:
            proxy.hang_up()
            process.terminate()
            process.wait(PATIENCE_SECONDS)

    return start


def _wait_until_it_listens(proxy: Served) -> None:
    while proxy.process.poll() is None:
        try:
            proxy.connect().close()
        except ConnectionRefusedError:
            continue
        return
    raise AssertionError((proxy.folder / "error.log").read_text())


class Upstream:
    """What listens in the API's place, and does only what a test has it do."""

    def __init__(self, listening: socket.socket) -> None:
        self.listening = listening
        self.port = int(listening.getsockname()[1])
        self._taken = ExitStack()

    def take(self) -> socket.socket:
        """Return the next connection of the proxy."""
        connection = self._taken.enter_context(self.listening.accept()[0])
        connection.settimeout(PATIENCE_SECONDS)
        return connection

    def has_been_asked(self) -> bool:
        """Return whether a connection waits to be taken."""
        self.listening.setblocking(False)
        try:
            self._taken.enter_context(self.listening.accept()[0])
        except BlockingIOError:
            return False
        return True

    def hang_up(self) -> None:
        """Close every connection."""
        self._taken.close()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """Yield a listener in the API's place."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE_SECONDS)
        upstream = Upstream(listening)
        yield upstream
        upstream.hang_up()


@pytest.fixture(scope="module")
def api(
    programs: dict[str, str], sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Yield an API process that is shown below /vnce and asks for no keys."""
    folder = tmp_path_factory.mktemp("api")
    shutil.copyfile(sqlite_template, folder / "vnce.db")
    environment = {
        "VNCE_DATABASE_URL": f"sqlite:///{folder}/vnce.db",
        "VNCE_BROKER_URL": "redis://127.0.0.1:1/0",
        "VNCE_AUTHENTICATION": "none",
        "VNCE_ROOT_PATH": "/vnce",
        **LIMITS,
    }
    with served_api(folder, environment) as api:
        yield api


@pytest.fixture(scope="module")
def served_proxy(
    api: Served, start_proxy: Proxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Yield the proxy before `api`, which waits for nobody longer than a second."""
    own = {"VNCE_ROOT_PATH": "/vnce", "VNCE_SILENCE_SECONDS": "1", **LIMITS}
    with start_proxy(tmp_path_factory.mktemp("proxy"), api.port, **own) as proxy:
        yield proxy


@pytest.fixture
def proxy(served_proxy: Served) -> Iterator[Served]:
    """Yield the proxy before `api`; connections that a test has opened are closed."""
    yield served_proxy
    served_proxy.hang_up()
