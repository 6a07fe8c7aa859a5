"""The API needs the `service` extra and nothing else, and the command line not even that."""

import os
import shutil
import socket
import subprocess
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytestmark = [pytest.mark.integration, pytest.mark.release]

ROOT = Path(__file__).parents[2]
PACKAGES = ("service", "worker", "vnce_engine")
ABSENT = ("numpy", "torch", "scipy", "sklearn", "pandas", "celery", "matplotlib", "networkx")
INSTALL_SECONDS = 240
START_SECONDS = 30


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment that has this project with the `service` extra."""
    folder = tmp_path_factory.mktemp("service-extra")
    # A copy, since a build leaves files beside what it builds.
    source = folder / "source"
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install += ["--constraint", ROOT / "constraints.txt", f"{source}[service]"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture
def url(python: Path, tmp_path: Path) -> Iterator[str]:
    """Start the API as an operator would, and yield its address."""
    environment = {
        "PATH": os.defpath,
        "VNCE_DATABASE_URL": f"sqlite:///{tmp_path / 'vnce.db'}",
        "VNCE_BROKER_URL": "redis://127.0.0.1:1/0",
        "VNCE_AUTHENTICATION": "none",
    }
    migrate = [python, "-m", "service", "migrate"]
    subprocess.run(migrate, check=True, env=environment, cwd=tmp_path, timeout=START_SECONDS)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        serve = [python, "-m", "service"]
        process = subprocess.Popen(
            [*serve, "--fd", str(listening.fileno())],
            env=environment,
            cwd=tmp_path,
            pass_fds=[listening.fileno()],
            stderr=subprocess.DEVNULL,
        )
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            process.terminate()
            process.wait(timeout=START_SECONDS)


def can_import(python: Path, module: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], timeout=START_SECONDS).returncode == 0


def run_vnce(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line, which is there without the extras of what computes."""
    command = [python.with_name("vnce"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=START_SECONDS, check=False
    )


def wait_until_alive(client: httpx.Client) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            client.get("/livez").raise_for_status()
        except httpx.TransportError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


def test_api_takes_an_upload_and_a_job_where_nothing_can_compute(python: Path, url: str) -> None:
    # One test, since the environment takes long to make.
    assert [module for module in ABSENT if can_import(python, module)] == []
    commands = run_vnce(python, "--help")
    assert commands.returncode == 0
    assert "vnce fit" in commands.stdout
    refused = run_vnce(python, "fit", str(ROOT / "worker" / "data" / "sachs.csv"), "--out", "never")
    assert refused.returncode == 1
    assert "pip install 'vnce[worker]'" in refused.stderr
    rows = "\n".join(f"{1 + row},{5 + row % 3},{2 + row % 5}" for row in range(20))
    with httpx.Client(base_url=url, timeout=START_SECONDS, trust_env=False) as client:
        wait_until_alive(client)
        assert client.get("/readyz").json()["status"] == "degraded"
        uploaded = client.post("/v1/datasets", content=f"a,b,c\n{rows}\n".encode())
        assert uploaded.status_code == 201, uploaded.text
        body = {"kind": "estimation", "dataset_id": uploaded.json()["id"]}
        submitted = client.post("/v1/jobs", json=body)
        assert submitted.status_code == 202, submitted.text
        assert client.get(submitted.headers["location"]).json()["state"] == "queued"
