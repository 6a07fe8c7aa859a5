"""Which transform `column_transform="auto"` chooses, and what it costs: log density of new rows.

    python -m benchmarks.transforms [--seeds 3] [--gaussian] [--data DIR]

A quarter of the cells blanked, two thirds of the rows (of 1,500 at most) are fitted, the others
judge: their log density, nats a row, under each transform of all columns, as a difference from the
best one's, and that of "auto" with its standard error, row by row, all seeds together; and the CPU
seconds of choosing and of the fit that follows. `--data` has further tables, one a CSV file. Rows
with a cell of 0, whose density some transforms make infinite, do not judge.
"""

import argparse
import time
import warnings
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from benchmarks.validity.simulated import ring
from vnce_engine import GaussianEM, TruncatedGaussianVNCE
from vnce_engine.simulate import mask_completely_at_random

FloatArray = NDArray[np.float64]

_MISSING = 0.25
_FIXED = ("none", "sqrt", "cbrt", "log1p", "rank-normal")
_MOST_ROWS = 1500
_TRUNCATED, _GAUSSIAN = TruncatedGaussianVNCE(penalty=0.3), GaussianEM()


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transforms")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--gaussian", action="store_true")
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    estimator = _GAUSSIAN if chosen.gaussian else _TRUNCATED
    print(f"table | {' | '.join(_FIXED)} | auto | error | chosen | choosing, s | fit, s")
    for name, X in _tables(chosen.data).items():
        if chosen.gaussian or not (X < 0).any():
            print(
                f"{name} {len(X)} × {X.shape[1]} | {_line(X, estimator, chosen.seeds)}", flush=True
            )


def _tables(folder: Path | None) -> dict[str, FloatArray]:
    """Return the tables by name, NaN where they miss cells."""
    root = ring(10, rng := np.random.default_rng(0)).sample(1000, 0.0, rng)
    packaged = {
        "ring": root,
        "ring, cubed": root**3,
        "proteins": _read(Path(str(files("worker").joinpath("data", "sachs.csv")))),
        "wine": load_wine().data,
        "iris": load_iris().data,
    }
    paths = sorted(folder.glob("*.csv")) if folder else []
    return packaged | {path.stem: table for path in paths if (table := _read(path)).size}


def _read(path: Path) -> FloatArray:
    """Return the columns of a file that are numbers."""
    return pd.read_csv(path).select_dtypes("number").to_numpy(dtype=np.float64)


def _line(X: FloatArray, estimator: Any, num_seeds: int) -> str:
    density: dict[str, list[FloatArray]] = {name: [] for name in (*_FIXED, "auto")}
    chosen: Counter[str] = Counter()
    seconds = {"auto": 0.0, "fit": 0.0}
    for seed in range(num_seeds):
        rng = np.random.default_rng(seed)
        table = mask_completely_at_random(X, _MISSING, rng)
        table = table[rng.permutation(len(table))[:_MOST_ROWS]]
        train, test = np.split(table, [2 * len(table) // 3])
        test = test[~(test == 0).any(axis=1)]
        for name in density:
            if name not in ("none", "rank-normal", "auto") and (X < 0).any():
                continue
            model = clone(estimator).set_params(column_transform=name, random_state=seed)
            start = time.process_time()
            model.fit(train)
            if name == "auto":
                seconds["auto"] += time.process_time() - start
                own = model.column_transform_
                chosen[own if isinstance(own, str) else "by column"] += 1
            density[name].append(model.score_samples(test))
        again = clone(estimator).set_params(column_transform=own, random_state=seed)
        start = time.process_time()
        again.fit(train)
        seconds["fit"] += time.process_time() - start
    of_rows = {name: np.concatenate(values) for name, values in density.items() if values}
    best = max((name for name in of_rows if name != "auto"), key=lambda name: of_rows[name].mean())
    fixed = [
        f"{of_rows[name].mean() - of_rows[best].mean():.2f}" if name in of_rows else "-"
        for name in _FIXED
    ]
    gain = of_rows["auto"] - of_rows[best]
    words = ", ".join(f"{name} {count}" for name, count in chosen.most_common())
    return " | ".join(
        [
            *fixed,
            f"{gain.mean():.3f}",
            f"{gain.std() / np.sqrt(len(gain)):.3f}",
            words,
            f"{(seconds['auto'] - seconds['fit']) / num_seeds:.1f}",
            f"{seconds['fit'] / num_seeds:.1f}",
        ]
    )


if __name__ == "__main__":
    main()
