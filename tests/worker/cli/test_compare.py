import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import Result

from vnce_engine import GaussianEM, compare
from worker.cli.comparing import specification

Vnce = Callable[..., Result]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """80 rows of three related columns, a tenth of the cells empty."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 1)) + 0.5 * rng.normal(size=(80, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    path = tmp_path / "table.csv"
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(path, index=False)
    return path


def models(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--model", text)]


def told(done: Result) -> str:
    return " ".join(done.output.replace("│", " ").split())


@pytest.mark.slow
def test_a_file_is_compared_by_processes_as_python_compares_it(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    asked = models(
        "gaussian:gaussian-em:name=plain",
        "gaussian:gaussian-em:penalty=0.3",
        "gaussian:nce:imputation=drop:penalty=1:max-iter=1:name=short",
    )
    done = vnce("compare", table, *asked, "--folds", "3", "--seed", "4", "--out", out)
    assert done.exit_code == 0, done.output
    result = json.loads((out / "result.json").read_text())
    names = ["plain", "gaussian:gaussian-em:penalty=0.3", "short"]
    assert {model["name"] for model in result["models"]} == set(names)
    found = compare(
        {"plain": GaussianEM(), "penalised": GaussianEM(penalty=0.3)},
        pd.read_csv(table),
        n_folds=3,
        random_state=4,
    )
    density = {model["name"]: model["log_density"] for model in result["models"]}
    by_name = {model.name: model.log_density for model in found.models}
    assert density["plain"] == pytest.approx(by_name["plain"], abs=1e-9)
    assert density[names[1]] == pytest.approx(by_name["penalised"], abs=1e-9)
    assert {path.name for path in out.rglob("*") if path.is_file()} == {
        "result.json",
        "comparison.csv",
        "pairs.csv",
        "report.html",
        "comparison.svg",
        "comparison.png",
        "comparison.pdf",
    }
    assert "of 3 pairs are selected by all models" in told(done)
    [short] = [place for place, m in enumerate(result["models"], 1) if m["name"] == "short"]
    assert f"{short}: the fit to all rows has not converged." in told(done)


@pytest.mark.slow
def test_a_model_that_fails_is_told_and_the_others_compared(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    # No row is complete in the columns that are used, as the fit will find: the table has another.
    frame = pd.read_csv(table)
    frame.loc[::2, "a"], frame.loc[1::2, "b"], frame["d"] = np.nan, np.nan, 1.0
    frame.to_csv(table, index=False)
    asked = models("gaussian:nce:imputation=drop", "gaussian:gaussian-em:penalty=0.1")
    columns = [word for name in "abc" for word in ("--variable", name)]
    done = vnce("compare", table, *asked, *columns, "--json", "--folds", "2")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert [model["name"] for model in result["models"]] == [
        "gaussian:gaussian-em:penalty=0.1",
        "gaussian:nce:imputation=drop",
    ]
    assert result["failures"][0]["error"]["code"] == "incompatible-model"


def test_a_model_is_read_as_the_options_of_a_fit_are() -> None:
    text = "truncated-gaussian:vnce:transform=none:penalties=0.1,1:noise_ratio=5:name=A b"
    assert specification(text) == {
        "name": "A b",
        "model": {"kind": "truncated-gaussian", "transform": "none"},
        "estimator": {
            "kind": "vnce",
            "penalties": [0.1, 1.0],
            "noise_ratio": 5,
        },
    }
    unpenalised = specification("gaussian:vnce:penalty=none")
    assert unpenalised["estimator"] == {"kind": "vnce", "penalty": None}
    divergence = specification("truncated-gaussian:contrastive-divergence:persistent=false")
    assert divergence["estimator"]["persistent"] is False


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gaussian", "must begin with MODEL:ESTIMATOR, got 'gaussian'"),
        ("gaussian:vnce:tol", "options are NAME=VALUE, got 'tol'"),
        ("gaussian:vnce:nope=1", "nope is no option of a model or an estimator"),
        ("gaussian:vnce:tol=abc", "tol must be a number, got 'abc'"),
        ("gaussian:magic", "estimator must be vnce"),
    ],
)
def test_what_is_no_model_is_said(text: str, reason: str) -> None:
    with pytest.raises(typer.BadParameter, match=reason):
        specification(text)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("gaussian:vnce",), "--model: List should have at least 2 items"),
        (("gaussian:vnce", "gaussian:mle"), '--model number 2: Model "gaussian" is estimated by'),
        (("gaussian:vnce", "gaussian:vnce:tol=2"), "--model number 2, tol: Input should be less"),
        (("gaussian:vnce:name=x", "gaussian:vnce:name=x"), "--model number 1, name: Another"),
    ],
)
def test_a_refusal_names_the_model(
    vnce: Vnce, table: Path, asked: tuple[str, ...], reason: str
) -> None:
    done = vnce("compare", table, *models(*asked))
    assert done.exit_code == 2
    assert reason in told(done)


def test_only_a_file_is_read_or_written_here(vnce: Vnce, tmp_path: Path) -> None:
    done = vnce("compare", "dataset_1", *models("gaussian:vnce"), "--out", tmp_path)
    assert (done.exit_code, "dataset_1 is no file" in told(done)) == (2, True)
    done = vnce("compare", "absent.csv", *models("gaussian:vnce"))
    assert (done.exit_code, "absent.csv is no file" in told(done)) == (2, True)
