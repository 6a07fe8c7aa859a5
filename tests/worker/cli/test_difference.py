import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

from tests.result_files import written
from vnce_engine import TruncatedGaussianVNCE, difference
from vnce_engine.simulate import ring_precision, sample_truncated_gaussian

Vnce = Callable[..., Result]
QUICK = ("--penalty", "1", "--linear", "zero")


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """Two tables of three columns, the second's in another order, a twentieth of cells empty."""
    rng = np.random.default_rng(0)
    paths = tmp_path / "cases.csv", tmp_path / "controls.csv"
    for path, num_rows, order in zip(paths, (90, 80), ("abc", "cab"), strict=True):
        X = sample_truncated_gaussian(ring_precision(3, rng), num_rows, rng)
        X[rng.random(X.shape) < 0.05] = np.nan
        pd.DataFrame(X, columns=list("abc"))[list(order)].to_csv(path, index=False)
    return paths


def told(done: Result) -> str:
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.slow
def test_two_files_are_fitted_and_compared_as_python_does(
    vnce: Vnce, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "r"
    done = vnce("difference", *tables, *QUICK, "--permutations", "4", "--seed", "2", "--out", out)
    assert done.exit_code == 0, done.output
    result = json.loads((out / "result.json").read_text())
    frames = [pd.read_csv(path) for path in tables]
    fits = [TruncatedGaussianVNCE(penalty=1.0, linear="zero", random_state=2) for _ in frames]
    first, second = (fit.fit(frame) for fit, frame in zip(fits, frames, strict=True))
    same = difference(first, second, (frames[0], frames[1]), 4, random_state=2)
    edges = {(edge["source"], edge["target"]): edge for edge in result["edges"]}
    for (i, j), z, p in zip(same.pairs, same.z, same.p_value, strict=True):
        assert edges["abc"[i], "abc"[j]]["z"] == pytest.approx(z, abs=1e-6)
        assert edges["abc"[i], "abc"[j]]["p_value"] == pytest.approx(p, abs=1e-6)
    assert result["largest_z"]["p_value"] == same.largest.p_value
    assert [result[side]["label"] for side in ("first", "second")] == ["cases.csv", "controls.csv"]
    files = {"result.json", "report.html", "difference.csv", "figures/difference.svg"}
    assert files | {"first/report.html", "second/graph.csv"} <= written(out)
    assert "cases.csv and controls.csv" in (out / "report.html").read_text()
    assert "3 pairs found to differ" in told(done)


@pytest.mark.slow
def test_without_a_folder_nothing_is_written_and_no_permutation_is_made(
    vnce: Vnce, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    before = written(tmp_path)
    done = vnce("difference", *tables, *QUICK, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert (result["kind"], result["n_permutations"]) == ("difference", 0)
    assert written(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cases.csv",), "groups of the rows of one file are compared by `vnce fit --by`"),
        (("cases.csv", "controls.csv", "--by", "a"), "are compared by `vnce fit --by`"),
        (("cases.csv", "job_1"), "job_1 is no file, and the other one is"),
        (("cases.csv", "copy.csv"), "cases.csv and copy.csv: Both networks are of the same table"),
        (("cases.csv", "other.csv"), "other.csv: Variables that one of the networks lacks: c, d."),
        (("cases.csv", "text.csv"), "text.csv: "),
        (("cases.csv", "controls.csv", "--estimator", "mle"), "mle has no standard errors"),
        (
            ("cases.csv", "controls.csv", "--model", "mixture", "--variable", "a"),
            "a mixture has no network",
        ),
        (
            (
                *("cases.csv", "controls.csv", "--permutations", "5"),
                *("--penalty-kind", "l1", "--selection", "stability"),
            ),
            "cases.csv and controls.csv: Graphs that half-samples chose cannot be held",
        ),
        (("job_1", "job_2", "--out", "r"), "job_1 is no file"),
        (("job_1", "job_2", "--transform", "cbrt"), "job_1 is no file"),
        (("nosuch.csv", "job_2"), "nosuch.csv is no file"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_fit(
    vnce: Vnce,
    tables: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    folder = tables[0].parent
    monkeypatch.chdir(folder)
    frame = pd.read_csv(tables[0])
    frame.to_csv("copy.csv", index=False)
    frame.rename(columns={"c": "d"}).to_csv("other.csv", index=False)
    frame.assign(a="much").to_csv("text.csv", index=False)
    done = vnce("difference", *arguments)
    assert done.exit_code == 2, done.output
    assert message in told(done)


@pytest.mark.slow
def test_a_network_without_standard_errors_is_named(vnce: Vnce, tables: tuple[Path, Path]) -> None:
    done = vnce("difference", *tables, *QUICK, "--max-iter", "1")
    assert done.exit_code == 2, done.output
    assert f"The network of {tables[0]} has no standard errors" in told(done)


@pytest.mark.slow
def test_linear_terms_that_were_chosen_apart_are_refused(vnce: Vnce, tmp_path: Path) -> None:
    """One table has a linear term that no model can do without, the other has none."""
    rng = np.random.default_rng(1)
    paths = tmp_path / "near.csv", tmp_path / "far.csv"
    for path, shift in zip(paths, (0.0, 9.0), strict=True):
        X = np.abs(rng.standard_normal((60, 3))) + shift
        pd.DataFrame(X, columns=list("abc")).to_csv(path, index=False)
    done = vnce("difference", *paths, "--penalty", "1")
    assert done.exit_code == 2, done.output
    assert f"{paths[0]} and {paths[1]}: The linear terms differ: " in told(done)
    assert "estimate both with the same --linear." in told(done)
