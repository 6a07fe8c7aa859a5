"""Other servers beside ours: a minimal FastAPI app, and pygeoapi if it is installed somewhere."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from benchmarks.service.baseline import FILE_VARIABLE
from benchmarks.service.stack import wait_for
from benchmarks.service.wrk import Load
from tests.embedded_postgres import free_port
from worker.processes.managed import Command, ManagedProcess, stop

CONNECTIONS = 64
PYGEOAPI = "pygeoapi"
# A server's URL, and its loads by kind: "submit" and "poll".
Other = tuple[str, Mapping[str, Load]]
STOP_SECONDS = 5.0
NUM_POLLED = 50
_HELLO = "/processes/hello-world/execution"


@contextmanager
def baseline() -> Iterator[Other]:
    """Yield the URL of the minimal app, and its loads by the name of what they are beside."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        factory = "benchmarks.service.baseline:create_app"
        argv = [sys.executable, "-m", "uvicorn", "--factory", factory, "--port", str(port)]
        environment = {FILE_VARIABLE: f"{folder}/items.db"}
        with _served(Command("baseline", [*argv, "--no-access-log"], environment), folder):
            url = f"http://127.0.0.1:{port}"
            wait_for(lambda: _answers(f"{url}/items/1"), "the baseline")
            yield (
                url,
                {
                    "submit": Load("POST", ["/items"], CONNECTIONS, {"name": "an item"}),
                    "poll": Load("GET", ["/items/1"], CONNECTIONS),
                },
            )


@contextmanager
def pygeoapi(python: str, num_stored: int) -> Iterator[Other]:
    """Yield the URL of pygeoapi, of the environment of that interpreter, and its loads.

    One process of gunicorn with threads, and pygeoapi's own store of jobs, TinyDB; a submission
    is the asynchronous execution of its example process, a poll the status of such a job. It holds
    `num_stored` jobs at first: the more, the slower it is.
    """
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        config, openapi = Path(folder) / "config.yml", Path(folder) / "openapi.yml"
        config.write_text(yaml.safe_dump(_configuration(url, port, folder)))
        environment = {"PYGEOAPI_CONFIG": str(config), "PYGEOAPI_OPENAPI": str(openapi)}
        program = Path(python).with_name("pygeoapi")
        subprocess.run(
            [program, "openapi", "generate", config, "--output-file", openapi],
            check=True,
            capture_output=True,
            env=environment,
        )
        argv = [python, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "1"]
        argv += ["--threads", "40", "pygeoapi.flask_app:APP"]
        with _served(Command("pygeoapi", argv, environment), folder):
            wait_for(lambda: _answers(url), "pygeoapi")
            body = {"inputs": {"name": "load"}}
            headers = {"Prefer": "respond-async"}
            with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
                made = [client.post(_HELLO, json=body, headers=headers) for _ in range(num_stored)]
            polled = made[:NUM_POLLED]
            paths = [str(httpx.URL(answer.headers["Location"]).path) for answer in polled]
            yield (
                url,
                {
                    "submit": Load(
                        "POST", [_HELLO], CONNECTIONS, body, {"Prefer": "respond-async"}
                    ),
                    "poll": Load("GET", [f"{path}?f=json" for path in paths], CONNECTIONS),
                },
            )


def _configuration(url: str, port: int, folder: str) -> dict[str, object]:
    text = {"en": "load"}
    about = {"title": text, "description": text, "keywords": {"en": ["load"]}}
    about |= {"keywords_type": "theme", "terms_of_service": url, "url": url}
    return {
        "server": {
            "bind": {"host": "127.0.0.1", "port": port},
            "url": url,
            "mimetype": "application/json; charset=UTF-8",
            "encoding": "utf-8",
            "languages": ["en-US"],
            "map": {"url": f"{url}/tiles", "attribution": "none"},
            "manager": {
                "name": "TinyDB",
                "connection": f"{folder}/jobs.db",
                "output_dir": folder,
            },
        },
        "logging": {"level": "ERROR"},
        "metadata": {
            "identification": about,
            "license": {"name": "none", "url": url},
            "provider": {"name": "load", "url": url},
            "contact": {"name": "load"},
        },
        "resources": {"hello-world": {"type": "process", "processor": {"name": "HelloWorld"}}},
    }


@contextmanager
def _served(command: Command, folder: str) -> Iterator[None]:
    process = ManagedProcess(command, Path(folder) / "log")
    try:
        yield
    finally:
        stop([process], STOP_SECONDS)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5, trust_env=False).is_success
    except httpx.TransportError:
        return False
