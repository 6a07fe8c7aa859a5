"""What a wheel holds, and that its command runs: alone, with the `service` extra, with all."""

import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

pytestmark = [pytest.mark.integration, pytest.mark.release]

ROOT = Path(__file__).parents[2]
ABSENT = ("numpy", "torch", "scipy", "sklearn", "pandas", "celery", "matplotlib", "networkx")
INSTALL_SECONDS = 240
START_SECONDS = 30
FIT_SECONDS = 120
ROWS = "\n".join(f"{1 + row},{5 + row % 3},{2 + row % 5}" for row in range(20))
TABLE = f"a,b,c\n{ROWS}\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run_pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment that has the wheel with the `service` extra."""
    python = new_environment(tmp_path_factory.mktemp("service-extra"))
    constraints = ["--constraint", ROOT / "constraints.txt"]
    run_pip(python, "install", *constraints, f"{wheel}[service]")
    return python


@pytest.fixture(scope="module")
def whole(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment that has the wheel, and sees our libraries."""
    python = new_environment(tmp_path_factory.mktemp("all-extras"))
    run_pip(python, "install", "--no-deps", wheel)
    (ours,) = python.parents[1].glob("lib/python*/site-packages")
    # Files of the folder named here that extend the path in turn, ours among them, are not read.
    (ours / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return python


def new_environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def run_pip(python: Path, *arguments: str | Path) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def url(python: Path, tmp_path: Path) -> Iterator[str]:
    """Start the API as an operator would, and yield its address."""
    environment = {
        "PATH": os.defpath,
        "VNCE_DATABASE_URL": f"sqlite:///{tmp_path / 'vnce.db'}",
        "VNCE_BROKER_URL": "redis://127.0.0.1:1/0",
        "VNCE_AUTHENTICATION": "none",
    }
    migrate = [python, "-m", "vnce.service", "migrate"]
    subprocess.run(migrate, check=True, env=environment, cwd=tmp_path, timeout=START_SECONDS)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        serve = [python, "-m", "vnce.service"]
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


def table_in(folder: Path) -> Path:
    table = folder / "table.csv"
    table.write_text(TABLE)
    return table


def can_import(python: Path, module: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    done = subprocess.run([python, "-c", code], timeout=START_SECONDS, cwd=python.parent)
    return done.returncode == 0


def run_vnce(
    python: Path, *arguments: str | Path, seconds: float = START_SECONDS
) -> subprocess.CompletedProcess[str]:
    command = [python.with_name("vnce"), *arguments]
    # Elsewhere, lest what stands in the repository be found.
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, cwd=python.parent
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


def test_a_wheel_holds_two_packages_and_every_file_of_theirs(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        held = [Path(name) for name in archive.namelist()]
    names = {path.parts[0] for path in held}
    assert {name for name in names if not name.endswith(".dist-info")} == {"vnce", "vnce_engine"}
    listed = ["git", "ls-files", "service", "worker", "vnce", "vnce_engine"]
    tracked = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    expected = {
        Path("vnce", path) if path.startswith(("service", "worker")) else Path(path)
        for path in tracked.splitlines()
    }
    assert expected <= set(held)


def test_no_name_so_plain_as_service_can_be_imported(python: Path, whole: Path) -> None:
    for environment in (python, whole):
        importable = ["vnce", "vnce_engine"]
        assert [can_import(environment, name) for name in importable] == [True, True]
        assert not can_import(environment, "service")
        assert not can_import(environment, "worker")


def test_the_command_of_a_wheel_fits_a_table(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "result"
    choices = ["--penalty", "1", "--out", out]
    fitted = run_vnce(whole, "fit", table_in(tmp_path), *choices, seconds=FIT_SECONDS)
    assert fitted.returncode == 0, fitted.stdout + fitted.stderr
    assert json.loads((out / "result.json").read_text())["names"] == ["a", "b", "c"]


def test_the_service_of_a_wheel_reads_an_upload_and_runs_a_job(whole: Path, tmp_path: Path) -> None:
    for name in ("service", "worker"):  # of whoever starts it there
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not the one of vnce')")
    command = [whole.with_name("vnce"), "serve", "--port", "0", "--data", tmp_path / "data"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as serving:
        try:
            assert serving.stdout is not None
            said = re.search(r"http://[0-9.:]+", serving.stdout.readline())
            assert said is not None
            where = ["--url", said[0]]
            uploaded = run_vnce(whole, "datasets", "upload", table_in(tmp_path), "--json", *where)
            job = [json.loads(uploaded.stdout)["id"], "--penalty", "1", "--wait", *where]
            done = run_vnce(whole, "submit", *job, seconds=FIT_SECONDS)
            assert done.returncode == 0, done.stdout + done.stderr
        finally:
            serving.terminate()


def test_api_takes_an_upload_and_a_job_where_nothing_can_compute(python: Path, url: str) -> None:
    assert [module for module in ABSENT if can_import(python, module)] == []
    assert run_vnce(python, "--version").stdout == f"vnce {version('vnce')}\n"
    commands = run_vnce(python, "--help")
    assert commands.returncode == 0
    assert "vnce fit" in commands.stdout
    refused = run_vnce(python, "fit", str(ROOT / "worker" / "data" / "sachs.csv"), "--out", "never")
    assert refused.returncode == 1
    assert "pip install 'vnce[worker]'" in refused.stderr
    with httpx.Client(base_url=url, timeout=START_SECONDS, trust_env=False) as client:
        wait_until_alive(client)
        assert client.get("/readyz").json()["status"] == "degraded"
        uploaded = client.post("/v1/datasets", content=TABLE.encode())
        assert uploaded.status_code == 201, uploaded.text
        body = {"kind": "estimation", "dataset_id": uploaded.json()["id"]}
        submitted = client.post("/v1/jobs", json=body)
        assert submitted.status_code == 202, submitted.text
        assert client.get(submitted.headers["location"]).json()["state"] == "queued"
