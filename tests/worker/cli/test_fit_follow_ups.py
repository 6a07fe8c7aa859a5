"""What `vnce fit` makes of a network besides it: resamples, groups, clusters of rows."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

from tests.report_pages import parsed, text_of, verdicts_of
from tests.result_files import written
from vnce_engine import (
    TruncatedGaussianVNCE,
    bootstrap,
    correlation_stability,
    group_difference,
)

Vnce = Callable[..., Result]
QUICK = ("--penalty", "1", "--linear", "zero", "--seed", "0")


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
        (("--by", "d"), "--by: the table has no column of this name"),
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
        (("--cluster", "d"), "--cluster: the table has no column of this name"),
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
