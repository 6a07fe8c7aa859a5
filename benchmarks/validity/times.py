"""CPU time beside the graphical lasso, in one run and on one thread."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import GraphicalLassoCV

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
from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.experiments.graph_recovery import GRAPHS, simulate

FloatArray = NDArray[np.float64]

PART = "times"
_FIRST_SEED = 100
_FIXED, _DEFAULT = 2.0, 8.0
_SMALL_SECONDS = 3.0
_RATIOS = "n=1000 d=20 30%"


def measurements(extent: Extent) -> Iterator[Measurement]:
    """Yield comparisons with the lasso, and default fits of small tables."""
    for graph, seed in product(GRAPHS, range(_FIRST_SEED, _FIRST_SEED + (5 if extent.full else 3))):
        yield Measurement(f"{graph} {_RATIOS}", seed, "all", partial(_ratios, graph, seed))
    for fraction, num_columns, seed in product((0.0, 0.3), (10, 20), range(100, 103)):
        cell = f"ring n=300 d={num_columns} {fraction:.0%}"
        yield Measurement(cell, seed, "all", partial(_small, fraction, num_columns, seed))


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """Yield medians and median ratios."""
    rows: list[tuple[object, ...]] = []
    for cell, methods in by_cell(lines):
        of_cell = methods.get("all", [])
        if not of_cell:
            continue
        seconds = values_of(of_cell, "seconds")
        if not cell.endswith(_RATIOS):
            median = float(np.median(seconds))
            rows.append(
                (cell, "default", median, "", "3 s at most", yes_or_no(median <= _SMALL_SECONDS))
            )
            continue
        lasso, fixed = (values_of(of_cell, name) for name in ("lasso", "fixed"))
        rows.append((cell, "graphical lasso CV", float(np.median(lasso)), "", "", ""))
        for name, times, most in (
            ("fixed penalty", fixed, _FIXED),
            ("default", seconds, _DEFAULT),
        ):
            ratio = float(np.median(times / lasso))
            target = f"{most:g} times at most"
            median = float(np.median(times))
            rows.append((cell, name, median, ratio, target, yes_or_no(ratio <= most)))
    yield Table(
        "CPU seconds on one thread, medians, and median ratios to the lasso on the same table",
        ("cell", "fit", "seconds", "times the lasso", "target", "met"),
        tuple(rows),
    )


def _ratios(graph: str, seed: int) -> Values:
    _, X = simulate(graph, 0.3, seed)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    lasso = _seconds(lambda: GraphicalLassoCV().fit(filled))
    fixed = _seconds(lambda: TruncatedGaussianVNCE(linear="zero", penalty=0.3).fit(X))
    _, values = fitted(TruncatedGaussianVNCE, X)
    return {**values, "lasso": lasso, "fixed": fixed}


def _small(fraction: float, num_columns: int, seed: int) -> Values:
    _, X = simulate("ring", fraction, seed, num_columns, 300)
    return fitted(TruncatedGaussianVNCE, X)[1]


def _seconds(work: Callable[[], Any]) -> float:
    start = process_time()
    work()
    return process_time() - start
