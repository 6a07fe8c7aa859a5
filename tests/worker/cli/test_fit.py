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

from tests.report_pages import parsed, text_of, verdicts_of
from tests.result_files import NETWORK_FILES, SCORED_FILES
from vnce_engine import (
    TruncatedGaussianVNCE,
    bootstrap,
    correlation_stability,
    group_difference,
)

Vnce = Callable[..., Result]
QUICK = ("--penalty", "1", "--linear", "zero", "--seed", "0")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """150 rows of three related columns, a tenth of the cells empty."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(150, 1)) + 0.5 * rng.normal(size=(150, 3)))
    X[rng.random(X.shape) < 0.1] = np.nan
    path = tmp_path / "table.csv"
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(path, index=False)
    return path


def written(out: Path) -> set[str]:
    return {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}


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


@pytest.mark.slow
def test_resamples_are_fitted_by_processes_and_summed_up(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    done = vnce("fit", table, "--out", out, "--resamples", "12", "--subsets", "10", *QUICK)
    assert done.exit_code == 0, done.output
    found = json.loads((out / "bootstrap.json").read_text())
    assert (found["n_ok"], found["n_parts"]) == (12, 3)
    assert "12 of 12 resamples have a network" in done.output
    assert f"with the estimation, of pairs: {found['rank_correlation']:.3f}." in done.output
    model = TruncatedGaussianVNCE(penalty=1.0, linear="zero").fit(pd.read_csv(table))
    same = bootstrap(model, pd.read_csv(table), 12)
    means = {(edge["source"], edge["target"]): edge["debiased"]["mean"] for edge in found["edges"]}
    for (i, j), mean in zip(same.pairs, same.debiased.mean, strict=True):
        assert means["abc"[i], "abc"[j]] == pytest.approx(mean, abs=1e-6)
    files = {"bootstrap.json", "bootstrap.csv", "bootstrap.parquet", "figures/bootstrap.svg"}
    assert files <= written(out)
    network, resamples = verdicts_of(parsed((out / "report.html").read_text()))
    assert "The fit converged." in network
    assert "12 of 12 resamples of the rows have a network." in resamples
    stability = correlation_stability(model, pd.read_csv(table), 10)
    assert found["stability"]["edges"]["coefficient"] == stability.edges.coefficient
    assert found["stability"]["strength"]["agreeing"] == stability.strength.agreeing.tolist()
    assert {"stability.csv", "figures/stability.pdf"} <= written(out)
    assert "Correlation stability, the share of rows that can be left out: pairs" in done.output
    assert "--resamples 12 --subsets 10 --seed 0" in text_of(
        parsed((out / "report.html").read_text())
    )


@pytest.mark.slow
def test_groups_are_compared_without_the_column_that_tells_them(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    out, frame = tmp_path / "r", pd.read_csv(table)
    group = np.where(np.arange(len(frame)) % 2, 1.5, -1.0)
    group[:3] = np.nan
    frame.assign(group=group).to_csv(table, index=False)
    done = vnce("fit", table, "--out", out, "--by", "group", "--permutations", "7", *QUICK)
    assert done.exit_code == 0, done.output
    assert json.loads((out / "result.json").read_text())["names"] == list("abc")
    found = json.loads((out / "difference.json").read_text())
    assert (found["n_ok"], found["n_parts"], found["n_unlabelled"]) == (7, 2, 3)
    assert [found[side]["label"] for side in ("first", "second")] == ["group = -1", "group = 1.5"]
    assert "Rows in neither group, left out: 3." in done.output
    model = TruncatedGaussianVNCE(penalty=1.0, linear="zero").fit(frame)
    same = group_difference(model, frame, group, 7)
    z = {(edge["source"], edge["target"]): edge["z"] for edge in found["edges"]}
    for (i, j), value in zip(same.pairs, same.z, strict=True):
        assert z["abc"[i], "abc"[j]] == pytest.approx(value, abs=1e-6)
    assert found["largest_z"]["p_value"] == same.largest.p_value
    files = {"difference.json", "difference.csv", "difference.parquet", "figures/difference.svg"}
    assert files <= written(out)
    report = parsed((out / "report.html").read_text())
    assert "found to differ between group = -1 and group = 1.5" in verdicts_of(report)[1]
    assert "--by group --permutations 7 --seed 0" in text_of(report)


@pytest.mark.slow
def test_groups_may_be_told_by_texts(vnce: Vnce, table: Path, tmp_path: Path) -> None:
    """As by numbers of the same order, but for their labels."""
    frame = pd.read_csv(table)
    is_case = np.arange(len(frame)) % 2 == 0
    found = {}
    for name, labels in (("text", ("case", "control")), ("number", (0, 1))):
        group = pd.Series(np.where(is_case, *labels), dtype=object)
        group[:3] = "NA"
        frame.assign(group=group).to_csv(table, index=False)
        out = tmp_path / name
        done = vnce("fit", table, "--out", out, "--by", "group", "--permutations", "3", *QUICK)
        assert done.exit_code == 0, done.output
        found[name] = json.loads((out / "difference.json").read_text())
    text, number = found["text"], found["number"]
    labels = [text[side]["label"] for side in ("first", "second")]
    assert labels == ["group = case", "group = control"]
    assert text["n_unlabelled"] == 3
    assert text["edges"] == number["edges"]
    assert text["largest_z"] == number["largest_z"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "d"), "no column d, whose labels were asked for"),
        (("--by", "a"), "groups need a column of exactly two"),
        (("--by", "a", "--estimator", "mle"), "mle has no standard errors"),
        (
            ("--by", "a", "--penalty-kind", "l1", "--selection", "stability"),
            "--by: a graph that half-samples chose (--selection",
        ),
        (
            ("--by", "a", "--variable", "b", "--variable", " a"),
            "--by: a is a variable of the network, by --variable",
        ),
    ],
)
def test_what_tells_no_groups_is_refused_before_the_fit(
    vnce: Vnce, table: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = vnce("fit", table, "--out", tmp_path / "r", *options)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "r").exists()


def test_subsets_are_asked_for_with_resamples(vnce: Vnce, table: Path, tmp_path: Path) -> None:
    alone = vnce("fit", table, "--out", tmp_path / "r", "--subsets", "20")
    assert (alone.exit_code, "--subsets: needs --resamples, too" in alone.output) == (2, True)
    options = ("--resamples", "12", "--subsets", "5")
    few = vnce("fit", table, "--out", tmp_path / "r", *options)
    assert few.exit_code == 2
    assert "--subsets must be 0, or at least 10" in " ".join(few.output.split())


def test_a_mixture_is_not_resampled(vnce: Vnce, table: Path, tmp_path: Path) -> None:
    options = ("--model", "mixture", "--variable", "a", "--resamples", "12")
    done = vnce("fit", table, "--out", tmp_path / "r", *options)
    assert (done.exit_code, "a mixture has no network" in done.output) == (2, True)


@pytest.mark.slow
def test_rows_of_a_cluster_go_together_in_the_network_its_resamples_and_its_groups(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    frame = pd.read_csv(table)
    frame[["a", "b", "c"]] = frame[["a", "b", "c"]].to_numpy()[np.arange(150) // 3]
    patient = np.array([f"patient {row // 3}" for row in range(150)])
    group = (np.arange(150) // 3) % 2
    frame.assign(patient=patient, group=group).to_csv(table, index=False)
    follow_ups = ("--resamples", "2", "--by", "group", "--permutations", "1")
    done = vnce("fit", table, "--out", out, "--cluster", "patient", *follow_ups, *QUICK)
    assert done.exit_code == 0, done.output
    assert "150 rows in 49 clusters" in " ".join(done.output.split())
    document = json.loads((out / "result.json").read_text())
    assert document["names"] == list("abc")
    assert document["counts"]["n_clusters"] == 49

    X = frame[["a", "b", "c"]]
    model = TruncatedGaussianVNCE(penalty=1.0, linear="zero").fit(X, clusters=patient)
    edges = pd.read_csv(out / "graph.csv").set_index(["source", "target"])
    for edge in model.edges_:
        error = edges.loc[("abc"[edge.source], "abc"[edge.target]), "standard_error"]
        assert error == pytest.approx(edge.standard_error)
    same = group_difference(model, X, group, 1, clusters=patient)
    found = json.loads((out / "difference.json").read_text())
    z = {(edge["source"], edge["target"]): edge["z"] for edge in found["edges"]}
    for (i, j), value in zip(same.pairs, same.z, strict=True):
        assert z["abc"[i], "abc"[j]] == pytest.approx(value, abs=1e-6)
    resampled = bootstrap(model, X, 2, clusters=patient)
    found = json.loads((out / "bootstrap.json").read_text())
    means = {(e["source"], e["target"]): e["debiased"]["mean"] for e in found["edges"]}
    for (i, j), value in zip(resampled.pairs, resampled.debiased.mean, strict=True):
        assert means["abc"[i], "abc"[j]] == pytest.approx(value, abs=1e-6)
    told = text_of(parsed((out / "report.html").read_text()))
    assert "--cluster patient" in told
    assert "--label" not in told
    assert "within 49 clusters" in told
    assert "150 rows in 49 clusters, 3 variables" in told
    assert "2 resamples of 49 clusters of rows" in told
    assert "1 permutations of clusters of rows" in told
    assert "group = 0: 75 rows in 25 clusters; group = 1: 72 rows in 24 clusters" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cluster", "d"), "no column d, whose labels were asked for"),
        (("--cluster", "a", "--variable", "a", "--variable", "b"), "among the variables"),
        (("--cluster", "patient", "--by", "half"), "have rows in both groups"),
        (("--cluster", "pair"), "at least 3 different labels"),
    ],
)
def test_what_tells_no_clusters_is_refused(
    vnce: Vnce, table: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    frame = pd.read_csv(table)
    row = np.arange(150)
    frame = frame.assign(patient=row // 3, half=row % 2, pair=row % 2)
    frame.to_csv(table, index=False)
    done = vnce("fit", table, "--out", tmp_path / "r", *options, *QUICK)
    assert done.exit_code in (1, 2)
    assert message in " ".join(done.output.split())
