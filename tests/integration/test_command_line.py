"""The commands that speak to a service, against one; and the demo as a user runs it."""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from tests.result_files import NETWORK_FILES, SCORED_FILES, figure_files
from worker.cli import app
from worker.embedded.running import RunningService

pytestmark = pytest.mark.integration

Vnce = Callable[..., Result]
VNCE = [sys.executable, "-c", "from worker.cli import main; main()"]
DEMO_FILES = {
    "result.json",
    *NETWORK_FILES,
    *SCORED_FILES,
    *figure_files("comparison"),
    "table.csv",
}


@pytest.fixture
def vnce(live_service: RunningService) -> Vnce:
    """Run a command against the live service."""
    environment = {"VNCE_URL": live_service.url}
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)), env=environment)


@pytest.fixture
def table(tmp_path: Path, small_table: np.ndarray) -> Path:
    path = tmp_path / "table.csv"
    rows = [["" if np.isnan(value) else repr(float(value)) for value in row] for row in small_table]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[f"v{i}" for i in range(5)], *rows])
    return path


def test_a_table_goes_up_and_its_result_comes_back(vnce: Vnce, table: Path, tmp_path: Path) -> None:
    dataset = json.loads(vnce("datasets", "upload", table, "--json").stdout)["id"]
    truth = tmp_path / "truth.csv"
    truth.write_text("source,target\nv0,v1\nv2,v3\n")
    assert vnce("datasets", "truth", dataset, truth).exit_code == 0

    plan = vnce("submit", dataset, "--penalty", "1", "--dry-run")
    assert json.loads(plan.stdout)["estimation"]["has_ground_truth"]
    submitted = vnce("submit", dataset, "--penalty", "1", "--seed", "3", "--tag", "mine")
    job = submitted.stdout.strip()
    waited = vnce("wait", job)
    assert waited.exit_code == 0, waited.output
    assert "AUC by abs_precision" in waited.stdout

    out = tmp_path / "result"
    assert vnce("get", job, "--out", out).exit_code == 0
    assert files_below(out) == {"result.json", *NETWORK_FILES, *SCORED_FILES}
    assert json.loads((out / "result.json").read_text())["seed"] == 3
    assert vnce("get", job, "precision.csv").stdout.encode() == (out / "precision.csv").read_bytes()

    listed = json.loads(vnce("jobs", "--tag", "mine", "--json").stdout)["items"]
    assert [item["id"] for item in listed] == [job]
    assert dataset in vnce("datasets", "list").stdout
    refused = vnce("datasets", "delete", dataset)
    assert refused.exit_code == 1
    assert "dataset-in-use" in refused.output


def test_a_network_is_drawn_at_another_threshold_without_a_new_fit(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    dataset = json.loads(vnce("datasets", "upload", table, "--json").stdout)["id"]
    job = vnce("submit", dataset, "--penalty", "1", "--edge-threshold", "0.9").stdout.strip()
    assert vnce("wait", job).exit_code == 0
    pairs = pd.read_csv(StringIO(vnce("get", job, "graph.csv").stdout))
    sizes = pairs["partial_correlation"].abs()
    assert len(pairs) == 10
    threshold = sizes[3]
    done = vnce("graph", job, "--threshold", threshold, "--out", tmp_path / "r")
    assert done.exit_code == 0, done.output
    assert f"4 of 10 pairs have |partial correlation| ≥ {threshold:g}." in done.stdout
    graph = nx.read_graphml(tmp_path / "r" / "graph.graphml")
    strongest = zip(pairs["source"][:4], pairs["target"][:4], strict=True)
    assert {frozenset(edge) for edge in graph.edges} == {frozenset(pair) for pair in strongest}
    assert graph.graph["edge_threshold"] == threshold
    assert "4 of 10 pairs" in (tmp_path / "r" / "figures" / "network.svg").read_text()
    assert vnce("graph", job, "--threshold", 0, "--out", tmp_path / "r").exit_code == 0
    assert nx.read_graphml(tmp_path / "r" / "graph.graphml").number_of_edges() == 10


def test_a_fit_by_the_service_and_one_without_it_agree(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    options = ("--transform", "sqrt", "--penalty", "1", "--seed", "5")
    dataset = json.loads(vnce("datasets", "upload", table, "--json").stdout)["id"]
    done = vnce("submit", dataset, *options, "--wait", "--json")
    assert done.exit_code == 0, done.output
    local = vnce("fit", table, "--out", tmp_path / "r", *options, "--json")
    remote_precision = np.array(json.loads(done.stdout)["precision"])
    local_precision = np.array(json.loads(local.stdout)["precision"])
    np.testing.assert_allclose(remote_precision, local_precision, rtol=1e-8)


def test_a_table_that_cannot_be_read_is_misuse_with_its_place(vnce: Vnce, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("a,b\n1,2\n3,oops\n")
    done = vnce("datasets", "upload", path)
    assert done.exit_code == 2
    assert "column 'b'" in done.output
    assert "'oops'" in done.output


def test_what_the_service_refuses_names_the_flags(vnce: Vnce, table: Path, tmp_path: Path) -> None:
    dataset = json.loads(vnce("datasets", "upload", table, "--json").stdout)["id"]
    options = ("--estimator", "nce", "--preset", "paper", "--penalties", "1,-1", "--seed", "-1")
    done = vnce("submit", dataset, *options)
    assert done.exit_code == 2
    for flag in ("--preset", "--penalties", "--seed"):
        assert f"• {flag}: " in done.output
    assert "/estimator" not in done.output

    units = tmp_path / "units.csv"
    units.write_text("a,b\nmm,mg\n1,2\n3,4\n")
    assert "Set --units-row to keep" in " ".join(vnce("datasets", "upload", units).output.split())
    assert vnce("datasets", "upload", units, "--units-row").exit_code == 0
    done = vnce("datasets", "upload", table, "--skip-rows", "-1")
    assert done.exit_code == 2
    assert "• --skip-rows: " in done.output


def test_an_unknown_job_is_a_failure(vnce: Vnce) -> None:
    done = vnce("wait", "job_0")
    assert done.exit_code == 1
    assert "not-found" in done.output


def test_a_cancelled_job_ends_a_wait_with_4(
    vnce: Vnce, tmp_path: Path, large_table: np.ndarray
) -> None:
    path = tmp_path / "large.csv"
    rows = ["" if np.isnan(value) else repr(float(value)) for value in large_table.flat]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"v{i}" for i in range(large_table.shape[1])])
        writer.writerows(np.reshape(rows, large_table.shape))
    dataset = json.loads(vnce("datasets", "upload", path, "--json").stdout)["id"]
    job = vnce("submit", dataset, "--tol", "1e-12", "--max-iter", "10000").stdout.strip()
    assert vnce("cancel", job).exit_code == 0
    assert vnce("wait", job).exit_code == 4
    refused = vnce("get", job)
    assert refused.exit_code == 1
    assert "job-cancelled" in refused.output


@pytest.mark.release
def test_the_demo_writes_its_files_ends_by_itself_and_repeats(
    tmp_path: Path, running: Callable[[list[int]], list[int]]
) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(
        [*VNCE, "demo"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for problem in ("sachs", "ring"):
        folder = tmp_path / "vnce-demo" / problem
        assert files_below(folder) == DEMO_FILES
        assert nx.read_graphml(folder / "graph.graphml").number_of_nodes() in (11, 20)
    assert re.search(r"vnce serve", done.stdout)
    assert not processes_in(tmp_path)

    # The same data, seed and versions, without the service in between.
    table = tmp_path / "vnce-demo" / "ring" / "table.csv"
    again = subprocess.run(
        [*VNCE, "fit", str(table), "--out", "again", "--seed", "0", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    first = json.loads((tmp_path / "vnce-demo" / "ring" / "result.json").read_text())
    np.testing.assert_allclose(
        np.array(json.loads(again.stdout)["precision"]), np.array(first["precision"]), rtol=1e-8
    )
    line = r"^ ?{} +(0\.\d+) +(0\.\d+) +(0\.\d+) +(0\.\d+)"
    vnce_auc = re.findall(line.format("VNCE"), done.stdout, re.MULTILINE)
    nce_auc = re.findall(line.format("NCE, mean-filled"), done.stdout, re.MULTILINE)
    assert len(vnce_auc) == len(nce_auc) == 2
    # On the ring, ranked by |K| as in the paper: filled means hide the true edges.
    assert float(vnce_auc[1][0]) > float(nce_auc[1][0])


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def processes_in(folder: Path) -> list[int]:
    """Return the processes whose working directory is `folder`."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink() == folder:
                found.append(int(link.parent.name))
        except OSError:  # it has ended, or is not ours to look at
            continue
    return found
