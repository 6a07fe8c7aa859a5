"""The client that is generated from `openapi.yaml` installs, and does the main job."""

import hashlib
import importlib
import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from worker.embedded.folder_keys import FolderKeys
from worker.embedded.running import RunningService, running_service

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
WAIT_SECONDS = 120
# Loads a part of the client, such as `api.jobs.create_job`.
Load = Callable[[str], Any]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate the client as `make client` does, install it, and return where it lies."""
    folder = tmp_path_factory.mktemp("client")
    generate = [PROGRAMS / "openapi-python-client", "generate", "--meta", "setup"]
    generate += ["--path", ROOT / "openapi.yaml", "--config", ROOT / "client.yaml"]
    generate += ["--output-path", folder / "source", "--fail-on-warning"]
    # The generator calls ruff.
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        generate, capture_output=True, text=True, timeout=120, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    install = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps"]
    install += ["--no-build-isolation", "--target", folder / "target", folder / "source"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "target"


@pytest.fixture
def load(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.syspath_prepend(str(installed))
    return lambda name: importlib.import_module(f"vnce_client.{name}")


@pytest.fixture
def api(load: Load, live_service: RunningService) -> Iterator[Any]:
    """Yield the generated client's connection to the live service."""
    client = load("client").Client(
        base_url=live_service.url,
        raise_on_unexpected_status=True,
        httpx_args={"trust_env": False},  # no proxy on the way to loopback
    )
    with client:
        yield client


@pytest.fixture
def keyed_service(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Yield the address of a service that requires keys, and an admin's token."""
    body = {"name": "first", "scopes": ["admin"]}
    with (
        running_service(tmp_path, require_keys=True) as service,
        FolderKeys.opened(tmp_path, "lab") as keys,
    ):
        yield service.url, keys.create_key(body)["token"]


def as_csv(table: np.ndarray) -> bytes:
    lines = [",".join("" if np.isnan(cell) else repr(float(cell)) for cell in row) for row in table]
    return "\n".join(["a,b,c,d,e", *lines]).encode()


def wait_for_success(load: Load, api: Any, job: Any) -> None:
    states = load("models").JobState
    deadline = time.monotonic() + WAIT_SECONDS
    while job.state in (states.QUEUED, states.RUNNING):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        job = load("api.jobs.get_job").sync(job.id, client=api)
    assert job.state == states.SUCCEEDED, job.error


def test_upload_job_poll_result_and_roc_through_the_client(
    load: Load, api: Any, small_table: np.ndarray
) -> None:
    models = load("models")
    content = as_csv(small_table)

    file = load("types").File(payload=io.BytesIO(content), file_name="small.csv")
    dataset = load("api.datasets.create_dataset").sync(client=api, body=file, name="small.csv")
    assert isinstance(dataset, models.DatasetRead)
    assert dataset.n_rows == len(small_table)
    download = load("api.datasets.download_dataset").sync(dataset.id, client=api)
    assert download.payload.read() == content

    edge = models.TruthEdge(source="b", target="a")
    truth = models.EdgeListCreate(edges=[edge])
    put = load("api.datasets.put_ground_truth").sync(dataset.id, client=api, body=truth)
    assert isinstance(put, models.GroundTruthRead)

    estimator = models.VnceEstimatorSpec(penalty=1.0)
    body = models.EstimationSpec(dataset_id=dataset.id, estimator=estimator, seed=7)
    job = load("api.jobs.create_job").sync(client=api, body=body, idempotency_key="from-the-client")
    assert isinstance(job, models.JobRead)
    assert job.spec.estimator.penalty == 1.0

    wait_for_success(load, api, job)
    result = load("api.results.get_result").sync(job.id, client=api)
    assert isinstance(result, models.EstimationResultRead)
    assert result.names == ["a", "b", "c", "d", "e"]
    assert result.seed == 7
    matrix = load("api.results.get_precision").sync(job.id, client=api)
    assert matrix.values == result.precision
    graph = load("api.results.list_edges").sync(job.id, client=api)
    assert len(graph.edges) == 10
    roc = load("api.results.get_roc").sync(job.id, client=api)
    assert isinstance(roc, models.RocRead)
    assert (roc.n_true_edges, roc.n_pairs) == (1, 10)
    download_file = load("api.results.download_file").sync
    npy = download_file(job.id, "precision", client=api, format_="npy")
    np.testing.assert_array_equal(np.load(npy.payload), np.array(result.precision))
    for file in result.files:
        downloaded = download_file(job.id, file.name, client=api)
        assert hashlib.sha256(downloaded.payload.read()).hexdigest() == file.sha256


def test_a_comparison_has_its_types(load: Load, api: Any, small_table: np.ndarray) -> None:
    models = load("models")
    file = load("types").File(payload=io.BytesIO(as_csv(small_table)), file_name="small.csv")
    dataset = load("api.datasets.create_dataset").sync(client=api, body=file, name="small.csv")
    gaussian = models.GaussianModelSpec()
    body = models.ComparisonSpec(
        dataset_id=dataset.id,
        specifications=[
            models.Specification(model=gaussian, estimator=models.GaussianEmEstimatorSpec()),
            models.Specification(
                name="penalised",
                model=gaussian,
                estimator=models.GaussianEmEstimatorSpec(penalty=0.1),
            ),
        ],
        n_folds=2,
    )
    job = load("api.jobs.create_job").sync(client=api, body=body)
    assert isinstance(job, models.JobRead)
    wait_for_success(load, api, job)
    result = load("api.results.get_result").sync(job.id, client=api)
    assert isinstance(result, models.ComparisonResultRead)
    assert {model.name for model in result.models} == {"gaussian:gaussian-em", "penalised"}
    assert result.models[0].behind == 0
    assert isinstance(result.models[1].fit, models.ComparedFitRead)


def test_two_networks_are_compared_through_the_client(
    load: Load, api: Any, small_table: np.ndarray
) -> None:
    models = load("models")
    create = load("api.jobs.create_job").sync

    def finished(body: Any) -> str:
        job = create(client=api, body=body)
        wait_for_success(load, api, job)
        return str(job.id)

    def network(rows: np.ndarray) -> str:
        file = load("types").File(payload=io.BytesIO(as_csv(rows)), file_name="rows.csv")
        dataset = load("api.datasets.create_dataset").sync(client=api, body=file, name="rows.csv")
        body = models.EstimationSpec(
            dataset_id=dataset.id,
            estimator=models.VnceEstimatorSpec(penalty=1.0),
            model=models.TruncatedGaussianModelSpec(linear=models.LinearChoice.ZERO),
        )
        return finished(body)

    first, second = network(small_table[::2]), network(small_table[1::2])
    compared = finished(models.DifferenceSpec(job_id=first, other_job_id=second))
    result = load("api.results.get_result").sync(compared, client=api)
    assert isinstance(result, models.DifferenceResultRead)
    assert (result.first.job_id, result.second.job_id) == (first, second)
    assert len(result.edges) == 10
    assert all(abs(e.first - e.second - e.difference) < 1e-12 for e in result.edges)


def test_what_its_readme_shows_has_its_types_and_runs(
    installed: Path, live_service: RunningService, small_table: np.ndarray, tmp_path: Path
) -> None:
    readme = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    # At another port, and with no proxy on the way to loopback.
    there = shown.replace("http://127.0.0.1:8000", live_service.url)
    script = tmp_path / "shown.py"
    script.write_text(there, encoding="utf-8")
    (tmp_path / "assays.csv").write_bytes(as_csv(small_table))
    # Its cache lies in the folder, too.
    check = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", script]
    run = [sys.executable, script]
    paths = {"MYPYPATH": str(installed), "PYTHONPATH": str(installed), "NO_PROXY": "127.0.0.1"}
    for command in (check, run):
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, **paths},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "area under the ROC curve: " in done.stdout
    assert b"<svg" in (tmp_path / "network.svg").read_bytes()


def test_error_comes_as_a_typed_problem(load: Load, api: Any) -> None:
    models = load("models")
    problem = load("api.jobs.get_job").sync("job_x", client=api)
    assert isinstance(problem, models.Problem)
    assert problem.code == models.ProblemCode.NOT_FOUND


def test_a_client_with_a_token_is_let_in_and_makes_keys(
    load: Load, keyed_service: tuple[str, str], small_table: np.ndarray
) -> None:
    models = load("models")
    url, token = keyed_service

    def connected(token: str) -> Any:
        client = load("client").AuthenticatedClient
        return client(base_url=url, token=token, httpx_args={"trust_env": False})

    scopes = [models.Scope.READ, models.Scope.SUBMIT]
    wanted = models.ApiKeyCreate(name="scripts", scopes=scopes)
    with connected(token) as admin:
        made = load("api.api_keys.create_api_key").sync(client=admin, body=wanted)
        refused = load("api.jobs.list_jobs").sync(client=admin)
    assert (made.tenant, made.expires_at) == ("lab", None)
    assert refused.code == models.ProblemCode.INSUFFICIENT_SCOPE

    file = load("types").File(payload=io.BytesIO(as_csv(small_table)), file_name="small.csv")
    with connected(made.token) as client:
        dataset = load("api.datasets.create_dataset").sync(client=client, body=file)
        assert isinstance(dataset, models.DatasetRead)
    stranger = load("client").Client(base_url=url, httpx_args={"trust_env": False})
    with stranger as client:
        problem = load("api.datasets.get_dataset").sync(dataset.id, client=client)
    assert problem.code == models.ProblemCode.UNAUTHENTICATED
