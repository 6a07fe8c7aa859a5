"""Imputation of masked cells of five real tables, against other imputers, and of simulated ones.

    python -m benchmarks.imputation [--masks 3] [--only TABLE ...] [--imputers NAME ...]
    python -m benchmarks.imputation --only --simulated 10

A fifth of the cells of complete tables are hidden at random. For each table and imputer, means over
masks, columns in units of their standard deviations: the root mean square error of the best guess;
the CRPS, which judges draws (of an imputer without draws it is the mean absolute error); how often
50 and 95 % intervals of 39 draws hold the hidden value; CPU seconds. `--simulated` does the last
two for so many simulated tables of each kind, by draws under varying and under fixed parameters,
with how often intervals of pooled regression slopes hold the truth.

gcimpute is compared where it is installed. The protein table is cube-rooted, for all imputers
alike; of the penguins the complete rows and the four measurements are taken.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - importing it is what lets scikit-learn export IterativeImputer
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from vnce_engine import GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.inference.pooling import pool
from vnce_engine.simulate import (
    hub_precision,
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

FloatArray = NDArray[np.float64]

_ROOT = Path(__file__).parents[1]
# Draws of which the 10th and the 30th bound half of the probability, the ends 95 %.
_NUM_DRAWS = 39
_RANKS = (10, 1)
_MISSING = 0.2


class Imputed(NamedTuple):
    """What an imputer makes of a table (n, d)."""

    guess: FloatArray
    draws: FloatArray | None
    """(39, n, d); None where the imputer has none."""


def _proteins() -> FloatArray:
    return np.cbrt(pd.read_csv(_ROOT / "worker/data/sachs.csv").to_numpy(np.float64))


def _penguins() -> FloatArray:
    table = pd.read_csv(_ROOT / "tests/data/penguins.csv")
    return table.select_dtypes("number").iloc[:, :4].dropna().to_numpy(np.float64)


_TABLES: dict[str, Callable[[], FloatArray]] = {
    "proteins": _proteins,
    "penguins": _penguins,
    "wine": lambda: load_wine().data,
    "iris": lambda: load_iris().data,
    "diabetes": lambda: load_diabetes().data,
}


def _vnce(estimator: Any) -> Callable[[FloatArray, int], Imputed]:
    def impute(X: FloatArray, seed: int) -> Imputed:
        fitted = estimator(random_state=seed).fit(X)
        return Imputed(fitted.impute(X), fitted.impute_multiple(X, _NUM_DRAWS))

    return impute


def _regressions(X: FloatArray, seed: int) -> Imputed:
    draws = [
        IterativeImputer(sample_posterior=True, random_state=s).fit_transform(X)
        for s in range(_NUM_DRAWS)
    ]
    return Imputed(IterativeImputer(random_state=seed).fit_transform(X), np.stack(draws))


def _neighbours(X: FloatArray, seed: int) -> Imputed:
    scale = np.nanstd(X, axis=0)
    return Imputed(KNNImputer().fit_transform(X / scale) * scale, None)


def _forest(X: FloatArray, seed: int) -> Imputed:
    forest = RandomForestRegressor(n_estimators=50, random_state=seed)
    imputer = IterativeImputer(forest, max_iter=5, random_state=seed)
    return Imputed(imputer.fit_transform(X), None)


def _copula(X: FloatArray, seed: int) -> Imputed:
    # No requirement of the project: asked for only where it is installed.
    copulas = import_module("gcimpute.gaussian_copula")
    # gcimpute 0.0.4 calls what NumPy 2 no longer has.
    vars(np).setdefault("round_", np.round)
    copula = copulas.GaussianCopula(random_state=seed, verbose=0)
    guess = copula.fit_transform(X)
    draws = copula.sample_imputation(X, num=_NUM_DRAWS)  # (n, d, 39)
    return Imputed(guess, np.moveaxis(draws, 2, 0))


_IMPUTERS: dict[str, Callable[[FloatArray, int], Imputed]] = {
    "column means": lambda X, seed: Imputed(SimpleImputer().fit_transform(X), None),
    "TruncatedGaussianVNCE": _vnce(TruncatedGaussianVNCE),
    "GaussianVNCE": _vnce(GaussianVNCE),
    "IterativeImputer": _regressions,
    "KNNImputer": _neighbours,
    "IterativeImputer, forest": _forest,
    "gcimpute": _copula,
}


def main() -> None:
    """Print a line for each table and imputer, then for each kind of simulated tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imputation")
    parser.add_argument("--masks", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(_TABLES), default=list(_TABLES))
    parser.add_argument("--imputers", nargs="+", choices=list(_IMPUTERS), default=list(_IMPUTERS))
    parser.add_argument("--simulated", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if chosen.only:
        print("table | imputer | RMSE | CRPS | in 50 % | in 95 % | seconds")
    for name in chosen.only:
        _compare(name, _TABLES[name](), chosen.imputers, chosen.masks)
    if chosen.simulated:
        _simulate(chosen.simulated)


def _compare(name: str, complete: FloatArray, imputers: list[str], num_masks: int) -> None:
    scaled = complete / complete.std(axis=0)
    for imputer in imputers:
        impute = _IMPUTERS[imputer]
        if imputer == "TruncatedGaussianVNCE" and complete.min() < 0:
            continue
        figures = []
        for seed in range(num_masks):
            X = mask_completely_at_random(scaled, _MISSING, np.random.default_rng(seed))
            start = time.process_time()
            try:
                imputed = impute(X, seed)
            except ImportError:
                break
            seconds = time.process_time() - start
            figures.append((*_judge(imputed, scaled, np.isnan(X)), seconds))
        if figures:
            means = " | ".join(f"{mean:.3f}" for mean in np.mean(figures, axis=0))
            print(f"{name} | {imputer} | {means}", flush=True)


def _judge(imputed: Imputed, truth: FloatArray, cells: NDArray[np.bool_]) -> tuple[float, ...]:
    hidden, guess = truth[cells], imputed.guess[cells]
    error = float(np.sqrt(np.square(guess - hidden).mean()))
    if imputed.draws is None:
        return error, float(np.abs(guess - hidden).mean()), np.nan, np.nan
    draws = np.sort(imputed.draws[:, cells], axis=0)
    # The mean distance of two draws, from their order.
    ranks = 2 * np.arange(1, _NUM_DRAWS + 1) - _NUM_DRAWS - 1
    apart = ranks @ draws / (_NUM_DRAWS * (_NUM_DRAWS - 1))
    crps = float((np.abs(draws - hidden).mean(axis=0) - apart).mean())
    return error, crps, *_covered(draws, hidden)


def _covered(draws: FloatArray, truth: FloatArray) -> list[float]:
    below = (draws < truth).sum(axis=0)
    return [float(((below >= r) & (below <= len(draws) - r)).mean()) for r in _RANKS]


class _Kind(NamedTuple):
    graph: Callable[[int, np.random.Generator], FloatArray]
    num_columns: int
    num_rows: int
    missing: float
    has_linear: bool


_KINDS = [
    _Kind(hub_precision, 6, 150, 0.3, has_linear=True),
    _Kind(ring_precision, 6, 400, 0.1, has_linear=False),
    _Kind(hub_precision, 6, 400, 0.5, has_linear=True),
    _Kind(ring_precision, 10, 1000, 0.3, has_linear=False),
]


def _simulate(num_tables: int) -> None:
    print("simulated | parameters | in 50 % | error | in 95 % | error | slopes in 95 %")
    for kind in _KINDS:
        found = np.array([_table(kind, seed) for seed in range(num_tables)])  # (tables, 2, 3)
        errors = found.std(axis=0, ddof=1) / np.sqrt(num_tables)
        for which, mean, error in zip(("drawn", "fixed"), found.mean(axis=0), errors, strict=True):
            graph, h = (
                kind.graph.__name__.removesuffix("_precision"),
                "" if kind.has_linear else "=0",
            )
            size = f"d={kind.num_columns}, n={kind.num_rows}, {kind.missing:.0%} missing"
            label = f"{graph}, h{h}, {size}"
            cells = f"{mean[0]:.3f} | {error[0]:.3f} | {mean[1]:.3f} | {error[1]:.3f}"
            print(f"{label} | {which} | {cells} | {mean[2]:.3f}", flush=True)


def _table(kind: _Kind, seed: int) -> list[list[float]]:
    rng = np.random.default_rng([seed, kind.num_columns, kind.num_rows])
    K, h = kind.graph(kind.num_columns, rng), np.zeros(kind.num_columns)
    if kind.has_linear:
        h = rng.uniform(0, 3, kind.num_columns)
    population = sample_truncated_gaussian(K, 50_000, rng, linear=h, thinning=3)
    truth = _regression(population)[0]
    complete = sample_truncated_gaussian(K, kind.num_rows, rng, linear=h)
    X = mask_completely_at_random(complete, kind.missing, rng)
    cells = np.isnan(X)
    fitted = TruncatedGaussianVNCE(random_state=seed).fit(X)
    found = []
    for result in (fitted._result, replace(fitted._result, model_draws=())):
        fitted._result = result
        tables = fitted.impute_multiple(X, _NUM_DRAWS)
        pooled = pool(*zip(*map(_regression, tables), strict=True), len(X) - len(truth))
        lower, upper = pooled.interval()
        slopes = float(((lower <= truth) & (truth <= upper))[1:].mean())
        found.append([*_covered(tables[:, cells], complete[cells]), slopes])
    return found


def _regression(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of the first column on the others, and their squared errors.

    Errors are White's (1980), as residuals of truncated rows vary.
    """
    A = np.column_stack([np.ones(len(table)), table[:, 1:]])
    inverse = np.linalg.inv(A.T @ A)
    coefficients = inverse @ A.T @ table[:, 0]
    weighted = A * (table[:, 0] - A @ coefficients)[:, np.newaxis]
    return coefficients, np.diag(inverse @ (weighted.T @ weighted) @ inverse)


if __name__ == "__main__":
    main()
