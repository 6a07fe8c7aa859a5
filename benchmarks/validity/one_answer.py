"""Whether a table has one answer, whatever the seed, the order of rows and columns, the threads."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_iris, load_wine

from benchmarks.validity.measurements import (
    Extent,
    Line,
    Measurement,
    Table,
    Values,
    by_cell,
    fitted,
    values_of,
    yes_or_no,
)
from benchmarks.validity.simulated import (
    Truth,
    chain,
    hub,
    independent,
    pairs,
    random_graph,
    ring,
    unit_ring,
)
from vnce_engine import TruncatedGaussianVNCE

FloatArray = NDArray[np.float64]

PART = "one-answer"
_MOST_COLUMNS = 40
# Threads beyond the cores that are free wait at full speed: on a busy machine a fit takes minutes.
_QUICK_THREADS = ("data: wine",)
_MEDIAN, _HIGH, _JACCARD = 0.25, 0.5, 0.95


def measurements(extent: Extent) -> Iterator[Measurement]:
    """Yield the fits to every table: seeds, orders, threads, and resamples."""
    tables_of = {**_packaged(), **_simulated(full=extent.full)}
    if extent.data is not None:
        tables_of |= _read(extent)
    num_seeds, num_orders, num_resamples = (8, 4, 20) if extent.full else (4, 1, 12)
    for name, table in tables_of.items():
        X = table(np.random.default_rng(0))
        missing = np.isnan(X).mean()
        cell = f"{name} n={len(X)} d={X.shape[1]} {missing:.0%}"
        for seed in range(num_seeds):
            yield Measurement(cell, seed, "seed", partial(_fit, X, seed))
        for order in range(num_orders):
            yield Measurement(cell, order, "rows shuffled", partial(_rows_shuffled, X, order))
            yield Measurement(cell, order, "columns permuted", partial(_columns_permuted, X, order))
        if extent.full or name in _QUICK_THREADS:
            yield Measurement(cell, 0, "two threads", partial(_two_threads, X))
        for resample in range(num_resamples):
            sample = partial(_resampled, X, table, resample, is_fresh=not name.startswith("data"))
            yield Measurement(cell, resample, "resample", sample)


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """Yield the spread of partial correlations in their sampling standard errors, and of edges."""
    rows = [
        (cell, *_summary(methods))
        for cell, methods in by_cell(lines)
        if {"seed", "resample"} <= methods.keys()
    ]
    yield Table(
        "One answer: spread of each partial correlation in its sampling standard errors (median / "
        "95th percentile over pairs); at most .25 / .5, mean Jaccard of selected sets at least .95",
        (
            "table",
            "SD over seeds",
            "rows shuffled",
            "columns permuted",
            "two threads",
            "Jaccard",
            "selected, seeds",
            "largest change",
            "met",
        ),
        tuple(rows),
    )


def _packaged() -> dict[str, Callable[[np.random.Generator], FloatArray]]:
    """Return tables of scikit-learn; they are what they are, whatever the generator."""
    data = {
        "wine": load_wine().data,
        "iris": load_iris().data,
        "diabetes": load_diabetes(scaled=False).data,
    }
    return {f"data: {name}": partial(_as_it_is, X) for name, X in data.items()}


def _simulated(*, full: bool) -> dict[str, Callable[[np.random.Generator], FloatArray]]:
    """Return makers of simulated tables, of which fresh ones tell the sampling standard error."""
    rng = np.random.default_rng(3)
    made: dict[str, tuple[Truth, int, float]] = {
        "Gaussian ring": (unit_ring(15, rng, is_far=True), 60, 0.0),
        "unit ring": (unit_ring(8, rng, is_far=False), 60, 0.3),
        "random graph": (random_graph(10, rng), 200, 0.3),
        "chain r=.95": (chain(0.95), 300, 0.0),
    }
    if full:
        made |= {
            "noise": (independent(5, is_far=False), 40, 0.0),
            "ring, few rows": (ring(10, rng), 100, 0.0),
            "ring": (ring(20, rng), 1_000, 0.3),
            "hub": (hub(30, rng), 1_000, 0.3),
            "Gaussian random graph": (
                Truth(random_graph(15, rng).precision, is_far=True),
                100,
                0.1,
            ),
            "five columns": (random_graph(5, rng), 800, 0.1),
        }
    return {
        name: partial(truth.sample, num_rows, fraction)
        for name, (truth, num_rows, fraction) in made.items()
    }


def _read(extent: Extent) -> dict[str, Callable[[np.random.Generator], FloatArray]]:
    """Return the folder's tables that are non-negative and not too wide; their numbers alone."""
    assert extent.data is not None
    found: dict[str, Callable[[np.random.Generator], FloatArray]] = {}
    for path in sorted(extent.data.glob("*.csv")):
        X = np.genfromtxt(path, delimiter=",", skip_header=1, dtype=np.float64)
        if X.ndim != 2:
            continue
        X = X[:, (~np.isnan(X)).sum(axis=0) >= 10]  # columns of text are NaN
        X = X[:, np.nanstd(X, axis=0) > 0]
        if 2 <= X.shape[1] <= _MOST_COLUMNS and not (X < 0).any():
            found[f"data: {path.stem}"] = partial(_as_it_is, X)
    return found


def _as_it_is(X: FloatArray, _rng: np.random.Generator) -> FloatArray:
    return X


def _fit(X: FloatArray, seed: int = 0) -> Values:
    estimator, values = fitted(lambda: TruncatedGaussianVNCE(random_state=seed), X)
    return _answer(estimator.partial_correlation_, _selected(estimator), values)


def _selected(estimator: TruncatedGaussianVNCE) -> NDArray[np.bool_]:
    selected = np.zeros(estimator.precision_.shape, dtype=bool)
    for edge in estimator.edges_:
        if edge.selected:
            selected[edge.source, edge.target] = selected[edge.target, edge.source] = True
    return selected


def _answer(correlation: FloatArray, selected: NDArray[np.bool_], values: Values) -> Values:
    return {
        **values,
        "pc": [round(float(x), 6) for x in pairs(correlation)],
        "selected": [int(x) for x in pairs(selected)],
    }


def _rows_shuffled(X: FloatArray, order: int) -> Values:
    return _fit(X[np.random.default_rng(order).permutation(len(X))])


def _columns_permuted(X: FloatArray, order: int) -> Values:
    permutation = np.random.default_rng(order).permutation(X.shape[1])
    estimator, values = fitted(TruncatedGaussianVNCE, X[:, permutation])
    back = np.ix_(np.argsort(permutation), np.argsort(permutation))
    return _answer(estimator.partial_correlation_[back], _selected(estimator)[back], values)


def _two_threads(X: FloatArray) -> Values:
    torch.set_num_threads(2)
    try:
        return _fit(X)
    finally:
        torch.set_num_threads(1)


def _resampled(
    X: FloatArray,
    table: Callable[[np.random.Generator], FloatArray],
    number: int,
    *,
    is_fresh: bool,
) -> Values:
    """Fit a fresh table of a simulation, or a bootstrap resample of a real one."""
    rng = np.random.default_rng(1 + number)
    return _fit(table(rng) if is_fresh else X[rng.integers(len(X), size=len(X))])


def _summary(methods: dict[str, list[Line]]) -> list[object]:
    error = values_of(methods["resample"], "pc").std(axis=0, ddof=1)
    seeds = values_of(methods["seed"], "pc")
    first = seeds[0]
    variants = ("rows shuffled", "columns permuted", "two threads")
    changes = {
        name: np.sqrt(np.mean((values_of(methods[name], "pc") - first) ** 2, axis=0))
        for name in variants
        if name in methods
    }
    spreads = {
        name: _in_errors(spread, error)
        for name, spread in {"seed": seeds.std(axis=0, ddof=1), **changes}.items()
    }
    answers = [line for name in ("seed", *variants) for line in methods.get(name, [])]
    jaccard = _mean_jaccard([line.values["selected"] for line in answers])
    met = jaccard >= _JACCARD and all(
        median <= _MEDIAN and high <= _HIGH for median, high in spreads.values()
    )
    texts = [
        f"{spreads[name][0]:.2f} / {spreads[name][1]:.2f}" if name in spreads else ""
        for name in ("seed", *variants)
    ]
    counts = " ".join(str(sum(line.values["selected"])) for line in methods["seed"])
    largest = np.abs(values_of(answers, "pc") - first).max()
    return [*texts, jaccard, counts, float(largest), yes_or_no(met)]


def _in_errors(spread: FloatArray, error: FloatArray) -> tuple[float, float]:
    """Return median and 95th percentile over pairs; no spread is none, whatever the error."""
    ratio = np.divide(spread, error, out=np.where(spread > 0, np.inf, 0.0), where=error > 0)
    median, high = np.quantile(ratio, [0.5, 0.95])
    return float(median), float(high)


def _mean_jaccard(selected: Sequence[Sequence[int]]) -> float:
    """Return the mean over pairs of answers of |both| / |either|, 1 for two empty sets."""
    sets = np.array(selected, dtype=bool)
    ratios = []
    for a, b in combinations(sets, 2):
        either = (a | b).sum()
        ratios.append((a & b).sum() / either if either else 1.0)
    return float(np.mean(ratios))
