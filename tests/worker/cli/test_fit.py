import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from typer.testing import Result

from tests.result_files import NETWORK_FILES, SCORED_FILES, written

Vnce = Callable[..., Result]
QUICK = ("--penalty", "1", "--linear", "zero", "--seed", "0")


@pytest.mark.slow
def test_every_file_is_written_a_true_graph_scored_and_nothing_of_an_earlier_result_stays_behind(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    truth = tmp_path / "truth.csv"
    truth.write_text("source,target\na,b\n")
    scored = vnce("fit", table, "--out", out, "--truth", truth, *QUICK)
    assert scored.exit_code == 0, scored.output
    assert written(out) == {"result.json", *NETWORK_FILES, *SCORED_FILES}
    assert "AUC by abs_scaled_interaction" in scored.output

    (out / "notes.txt").write_text("mine")
    done = vnce("fit", table, "--out", out, *QUICK)
    assert done.exit_code == 0, done.output
    assert written(out) == {"notes.txt", "result.json", *NETWORK_FILES}
    assert "converged" in done.output
    assert "missing completely at random" in " ".join(done.output.split())


@pytest.mark.slow
def test_json_output_is_the_result_and_nothing_else(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    done = vnce("fit", table, "--out", tmp_path / "r", "--json", *QUICK)
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "r" / "result.json").read_text())
    assert document["dataset"]["name"] == "table.csv"
    assert document["seed"] == 0


@pytest.mark.slow
def test_a_transform_that_was_chosen_is_told_with_what_was_compared(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    chosen = vnce("fit", table, "--out", tmp_path / "r", "--transform", "auto", *QUICK)
    document = json.loads((tmp_path / "r" / "result.json").read_text())
    evidence = document["transform_evidence"]
    shared = [step for step in evidence if isinstance(step["transform"], str)]
    assert {step["transform"] for step in shared} == {
        "none",
        "sqrt",
        "cbrt",
        "log1p",
        "rank-normal",
    }
    (step,) = (step for step in evidence if step["chosen"])
    assert document["transform"] == step["transform"]
    best = max(shared, key=lambda step: step["log_density"])
    said = " ".join(chosen.output.split())
    assert f"nats per row: {best['transform']} {best['log_density']:.2f};" in said
    other = min(shared, key=lambda step: step["log_density"])
    gap = other["log_density"] - best["log_density"]
    assert f"{other['transform']} {gap:+.2f} ± {other['standard_error']:.2f}" in said
    matrix = json.loads((tmp_path / "r" / "precision.json").read_text())
    assert matrix["transform"] == document["transform"]
    report = (tmp_path / "r" / "report.html").read_text()
    assert "was chosen by the log density of held-out rows" in report


@pytest.mark.slow
def test_a_fit_that_did_not_converge_ends_with_3_and_its_result(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    done = vnce("fit", table, "--out", tmp_path / "r", "--max-iter", "1", *QUICK)
    assert done.exit_code == 3
    assert "not converged" in done.output
    assert "--max-iter" in done.output
    assert (tmp_path / "r" / "result.json").exists()


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("a,b\n1,2\n3,oops\n", [], "'oops'"),
        ("a,b\n", [], "no rows"),
        ("a,b\n" + "1,2\n" * 20, [], "column 'a'"),
        ("a,b\nmm,mg\n" + "1,2\n" * 20, [], "Set --units-row to keep"),
        ("a,b\n" + "".join(f"{i},{i % 3 - 1}\n" for i in range(20)), [], "again with --na-value"),
        ("a,b\n" + "".join(f"{i},{-i}\n" for i in range(20)), [], "column 'b', 19 cells"),
        ("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(20)), ["--variable", "c"], "'c'"),
        ("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(20)), ["--tol", "2"], "• --tol:"),
        (
            "a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(20)),
            ["--delimiter", "x"],
            "--delimiter:",
        ),
        ("a,b\n" + "".join(f"<0.5,{i}\n{i},2\n" for i in range(20)), [], "column 'a', 20 cells"),
    ],
)
def test_what_cannot_be_read_or_fitted_is_misuse_that_names_its_place(
    vnce: Vnce, tmp_path: Path, content: str, options: list[str], told: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(content)
    done = vnce("fit", path, "--out", tmp_path / "r", *options)
    assert done.exit_code == 2, done.output
    assert told in " ".join(done.output.split())
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("VNCE_MAX_CELLS", "most allowed is 50, set by VNCE_MAX_CELLS"),
        ("VNCE_MAX_DECODED_BYTES", "most allowed is 50, set by VNCE_MAX_DECODED_BYTES"),
    ],
)
def test_a_table_beyond_the_service_s_limits_is_refused_in_its_words(
    vnce: Vnce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, told: str
) -> None:
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100.0) % 7}).to_parquet(path)
    monkeypatch.setenv(variable, "50")
    done = vnce("fit", path, "--out", tmp_path / "r")
    assert done.exit_code == 2, done.output
    assert told in " ".join(done.output.split())
    assert not (tmp_path / "r").exists()


def test_a_preset_does_not_go_with_nce(vnce: Vnce, table: Path, tmp_path: Path) -> None:
    options = ("--estimator", "nce", "--preset", "paper")
    done = vnce("fit", table, "--out", tmp_path / "r", *options, *QUICK)
    assert done.exit_code == 2
    assert "• --preset:" in done.output


@pytest.mark.slow
def test_censored_cells_can_be_taken_for_missing(vnce: Vnce, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "".join(f"<0.5,{i}\n{i},{i % 5}\n" for i in range(30)))
    done = vnce("fit", path, "--out", tmp_path / "r", "--censored", "missing", *QUICK)
    assert done.exit_code == 0, done.output
    assert "30 in a" in done.output


@pytest.mark.slow
def test_ctrl_c_ends_a_fit_with_4(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "large.csv"
    X = np.abs(rng.normal(size=(3000, 30)))
    X[rng.random(X.shape) < 0.3] = np.nan
    pd.DataFrame(X).add_prefix("v").to_csv(path, index=False)
    # A shell's background job, as this test may be, hands down that it ignores Ctrl-C.
    hears_ctrl_c = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{hears_ctrl_c}; from worker.cli import main; main()"]
    with subprocess.Popen(
        [*command, "fit", str(path), "--out", str(tmp_path / "r"), "--seed", "0"],
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
    ) as process:
        assert process.stderr is not None
        assert any("linear term" in line for line in process.stderr)  # False where it has ended
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 4
        assert "cancelled" in process.stderr.read()
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_penguins_are_fitted_as_they_come(vnce: Vnce, tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "data" / "penguins.csv"
    done = vnce("fit", source, "--out", tmp_path / "r", "--seed", "0")
    assert done.exit_code == 0, done.output
    graph = nx.read_graphml(tmp_path / "r" / "graph.graphml")
    penguins = pd.read_csv(source)
    assert list(graph) == list(penguins)
    # Two of 344 rows have gaps: the strongest pair is that of the plain partial correlations.
    inverse = np.linalg.inv(penguins.dropna().corr().to_numpy())
    plain = -inverse / np.sqrt(np.outer(inverse.diagonal(), inverse.diagonal()))
    i, j = np.unravel_index(np.abs(np.triu(plain, k=1)).argmax(), plain.shape)
    strongest = max(graph.edges(data=True), key=lambda edge: edge[2]["weight"])
    assert set(strongest[:2]) == {list(penguins)[i], list(penguins)[j]}
    assert np.sign(strongest[2]["partial_correlation"]) == np.sign(plain[i, j])


@pytest.mark.slow
def test_masked_wines_are_imputed_and_nothing_else_changes(vnce: Vnce, tmp_path: Path) -> None:
    rng = np.random.default_rng(20051)
    wine = load_wine(as_frame=True).data
    masked = wine.mask(rng.random(wine.shape) < 0.2)
    masked.to_csv(tmp_path / "wine.csv", index=False)
    options = ("--transform", "sqrt", "--penalty", "1", "--linear", "free", "--seed", "0")
    done = vnce("fit", tmp_path / "wine.csv", "--out", tmp_path / "r", *options)
    assert done.exit_code == 0, done.output
    completed = pd.read_csv(tmp_path / "r" / "imputations.csv")
    assert list(completed) == list(wine)
    assert (completed[masked.notna()].isna() == masked.isna()).all().all()
    assert (completed[masked.notna()].fillna(-1) == masked.fillna(-1)).all().all()
    # Better than the columns' means, which explain nothing of the masked cells' variation.
    scaled_error = ((completed - wine) / wine.std())[masked.isna()]
    mean_error = ((masked.mean() - wine) / wine.std())[masked.isna()]
    assert np.nanmean(scaled_error**2) < np.nanmean(mean_error**2)


@pytest.mark.slow
def test_what_is_odd_about_the_table_is_said_in_the_result(vnce: Vnce, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [f"{i % 7 + 1},{(i * i) % 11}" for i in range(60)]
    path.write_text("a,b\n" + "\n".join([*rows, "9999,3", "9999,4", "9999,5"]) + "\n")
    done = vnce("fit", path, "--out", tmp_path / "r", *QUICK)
    assert done.exit_code == 0, done.output
    warnings = json.loads((tmp_path / "r" / "result.json").read_text())["warnings"]
    odd = [warning["message"] for warning in warnings if "9999" in warning["message"]]
    assert len(odd) == 1
    assert odd[0].replace("`na_values`", "--na-value") in " ".join(done.output.split())


def test_a_variable_named_twice_is_refused(vnce: Vnce, table: Path, tmp_path: Path) -> None:
    name = table.read_text().splitlines()[0].split(",")[0]
    done = vnce("fit", table, "--out", tmp_path / "r", "--variable", name, "--variable", name)
    assert done.exit_code == 2
    assert "named twice" in done.output


@pytest.mark.slow
def test_the_papers_preset_reports_the_choices_that_it_makes(vnce: Vnce, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    path = tmp_path / "table.csv"
    pd.DataFrame(rng.uniform(0.1, 2, size=(60, 3)), columns=list("abc")).to_csv(path, index=False)
    options = ("--preset", "paper", "--seed", "0", "--max-iter", "2")
    vnce("fit", path, "--out", tmp_path / "r", *options)
    result = json.loads((tmp_path / "r" / "result.json").read_text())
    assert result["penalty"]["requested"] is None
    assert result["linear"]["requested"] == "zero"
