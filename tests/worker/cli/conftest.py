from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from worker.cli import app

Vnce = Callable[..., Result]


@pytest.fixture
def vnce() -> Vnce:
    """Run the command line in this process."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """150 rows of three related columns, a tenth of the cells empty."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(150, 1)) + 0.5 * rng.normal(size=(150, 3)))
    X[rng.random(X.shape) < 0.1] = np.nan
    path = tmp_path / "table.csv"
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(path, index=False)
    return path
