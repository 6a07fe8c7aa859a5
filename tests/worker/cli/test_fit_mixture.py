"""`vnce fit --model mixture`: a column to a folder."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from tests.result_files import MIXTURE_FILES

Vnce = Callable[..., Result]
MIXTURE = ("--model", "mixture", "--n-starts", "3", "--seed", "0")


@pytest.fixture
def column(tmp_path: Path) -> Path:
    """400 values of a mixture of N(0, 1) and N(0, 4²) beside another column, four missing."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(400) < 0.5, 1.0, 4.0) * rng.normal(size=400)
    cells = ["NA" if row % 100 == 9 else repr(float(value)) for row, value in enumerate(x)]
    path = tmp_path / "column.csv"
    path.write_text("x,y\n" + "\n".join(f"{cell},{row % 7}" for row, cell in enumerate(cells)))
    return path


@pytest.mark.slow
def test_a_column_becomes_estimates_and_files(vnce: Vnce, column: Path, tmp_path: Path) -> None:
    out = tmp_path / "r"
    (out / "figures").mkdir(parents=True)
    (out / "graph.csv").write_text("of an earlier network")
    (tmp_path / "mine.csv").write_text("no file of any result")
    listed = [{"name": "graph.csv"}, {"name": "../mine.csv"}, {"name": "figures/../../mine.csv"}]
    (out / "result.json").write_text(json.dumps({"files": listed}))
    options = ("--variable", "x", "--estimator", "nce", "--form", "normalised")
    done = vnce("fit", column, "--out", out, *MIXTURE, *options)
    assert done.exit_code == 0, done.output
    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert written == {"result.json", *MIXTURE_FILES}
    assert (tmp_path / "mine.csv").exists()
    result = json.loads((out / "result.json").read_text())
    assert (result["kind"], result["name"], result["form"]) == ("mixture", "x", "normalised")
    told = " ".join(done.output.split())
    assert f"{result['theta']['value']:.6g}" in told
    assert "4 rows left out" in told


def test_two_columns_are_misuse_that_says_how_to_choose(
    vnce: Vnce, column: Path, tmp_path: Path
) -> None:
    done = vnce("fit", column, "--out", tmp_path / "r", *MIXTURE)
    assert done.exit_code == 2
    assert "one column, got 2" in " ".join(done.output.split())


def test_a_network_estimator_and_a_true_graph_are_misuse(
    vnce: Vnce, column: Path, tmp_path: Path
) -> None:
    options = ("--variable", "x", "--estimator", "score-matching")
    done = vnce("fit", column, "--out", tmp_path / "r", *MIXTURE, *options)
    assert (done.exit_code, "• --estimator:" in done.output) == (2, True)
    truth = tmp_path / "truth.csv"
    truth.write_text("source,target\nx,y\n")
    options = ("--variable", "x", "--truth", str(truth))
    done = vnce("fit", column, "--out", tmp_path / "r", *MIXTURE, *options)
    assert (done.exit_code, "no graph to score" in done.output) == (2, True)


@pytest.mark.slow
def test_a_fit_that_stopped_too_early_ends_with_3(vnce: Vnce, column: Path, tmp_path: Path) -> None:
    options = ("--variable", "x", "--estimator", "mle", "--max-iter", "1")
    done = vnce("fit", column, "--out", tmp_path / "r", *MIXTURE, *options)
    assert done.exit_code == 3, done.output
    assert "not converged" in done.output
