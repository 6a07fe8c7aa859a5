from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

Vnce = Callable[..., Result]
QUICK = ("--penalty", "1", "--linear", "zero", "--seed", "0")


@pytest.fixture
def lines() -> list[str]:
    """Return a header and 60 rows of three related columns, an eighth of the cells empty."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, 3)))
    is_missing = rng.random(X.shape) < 0.12
    cells = np.where(is_missing, "", np.char.mod("%.3f", X))  # 0.500 and the like among them
    return ["a,b,c", *(",".join(row) for row in cells)]


@pytest.fixture
def table(tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_file_is_filled_and_what_was_observed_stays_to_the_last_character(
    vnce: Vnce, table: Path, lines: list[str]
) -> None:
    done = vnce("impute", table, *QUICK)
    assert done.exit_code == 0, done.output
    num_missing = sum(cell == "" for line in lines for cell in line.split(","))
    told = " ".join(done.output.split())
    assert (
        f"{num_missing} of 180 cells filled by their conditional means: table-imputed.csv." in told
    )
    assert "missing completely at random" in told
    filled = (table.parent / "table-imputed.csv").read_text().splitlines()
    for before, after in zip(lines, filled, strict=True):
        for old, new in zip(before.split(","), after.split(","), strict=True):
            assert new == old or (old == "" and float(new) > 0)


def test_several_tables_of_draws_stand_one_below_the_other(
    vnce: Vnce, table: Path, tmp_path: Path
) -> None:
    done = vnce("impute", table, "-m", "2", "--output", tmp_path / "both.parquet", *QUICK)
    assert done.exit_code == 0, done.output
    assert "by draws, in 2 tables one below the other" in " ".join(done.output.split())
    both = pd.read_parquet(tmp_path / "both.parquet")
    assert both["imputation"].value_counts().to_dict() == {1: 60, 2: 60}
    X = pd.read_csv(table)
    first, second = (both[both["imputation"] == i][list("abc")].to_numpy() for i in (1, 2))
    observed = X.notna().to_numpy()
    assert (first[observed] == X.to_numpy()[observed]).all()
    assert (first[observed] == second[observed]).all()
    assert (first[~observed] != second[~observed]).all()


def test_a_fit_that_did_not_converge_is_told_by_the_exit_status(vnce: Vnce, table: Path) -> None:
    assert vnce("impute", table, *QUICK, "--max-iter", "1").exit_code == 3
    assert (table.parent / "table-imputed.csv").exists()


@pytest.mark.slow
def test_tables_that_cannot_be_drawn_are_not_written(vnce: Vnce, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(40, 3))
    X[0, 0] = np.nan
    path = tmp_path / "heavy.csv"
    pd.DataFrame(X, columns=list("abc")).to_csv(path, index=False)
    output = tmp_path / "out.csv"
    options = ("--estimator", "score-matching", "--linear", "zero")
    done = vnce("impute", path, "-m", "3", "--output", output, *options)
    assert done.exit_code == 1, done.output
    assert "no completed tables were drawn" in " ".join(done.output.split())
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--output", "table.csv"), "must not be the table itself"),
        (("--output", "table.txt"), "must end in .csv or .parquet"),
        (("--output", "nowhere/table.csv"), "is no folder"),
        (("-m", "101"), "101 is not in the range"),
        (("--edge-threshold", "0.2"), "No such option"),
        (("--variable", "a"), "at least 2 variables"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_fitted(
    vnce: Vnce, table: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    done = vnce("impute", table, *arguments)
    assert done.exit_code == 2, done.output
    assert complaint in " ".join(done.output.replace("│", " ").split())
    assert "filled" not in done.output
