"""Whether small tables lose: error and ranking beside others, noise without edges, rings with."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
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
    spread,
    values_of,
    yes_or_no,
)
from benchmarks.validity.simulated import Truth, independent, pairs, random_graph, unit_ring
from vnce_engine import GaussianEM, TruncatedGaussianVNCE
from vnce_engine.inference.metrics import edge_roc, scaled_interaction

FloatArray = NDArray[np.float64]

PART = "small"
_LASSO = "graphical lasso CV"
_EBIC = {"Gaussian EM + eBIC": partial(GaussianEM, penalty="ebic")}
# The second takes seconds a table.
_OTHERS = {**_EBIC, "EM + graphical lasso CV": partial(GaussianEM, penalty="cv")}
_EMPTY, _NOT_EMPTY = 0.95, 0.9
_NOISE, _RINGS = "noise", "rings of .3-.45"


def measurements(extent: Extent) -> Iterator[Measurement]:
    """Yield comparisons at n = 40 to 300, then tables of noise and of rings."""
    num_seeds = 30 if extent.full else 4
    rows = (40, 60, 100, 300) if extent.full else (40, 100, 300)
    others = _OTHERS if extent.full else _EBIC
    for is_far, graph, num_rows, fraction in product(
        (True, False), ("ring", "random"), rows, (0.0, 0.3) if extent.full else (0.3,)
    ):
        kind = "Gaussian" if is_far else "truncated"
        for seed in range(num_seeds):
            rng = np.random.default_rng((4, seed))
            truth = unit_ring(10, rng, is_far=is_far)
            if graph == "random":
                truth = Truth(random_graph(10, rng).precision, is_far=is_far)
            cell = f"{kind} {graph} d=10 n={num_rows} {fraction:.0%}"
            yield Measurement(
                cell, seed, "all", partial(_compare, truth, num_rows, fraction, seed, others)
            )
    for (d, num_rows), is_far in product(
        ((8, 60), (15, 40), (5, 100)) if extent.full else ((8, 60), (15, 40)), (True, False)
    ):
        kind = "Gaussian" if is_far else "truncated"
        for seed in range(100 if extent.full else 10):
            run = partial(_edges, independent(d, is_far=is_far), num_rows, seed)
            yield Measurement(f"{_NOISE}, {kind} d={d} n={num_rows}", seed, "all", run)
    for is_far in (True, False):
        kind = "Gaussian" if is_far else "truncated"
        for seed in range(100 if extent.full else 10):
            truth = unit_ring(8, np.random.default_rng((5, seed)), is_far=is_far)
            run = partial(_edges, truth, 60, seed)
            yield Measurement(f"{_RINGS}, {kind} d=8 n=60", seed, "all", run)


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """Yield comparisons with others, and shares of empty graphs."""
    rows, shares = [], []
    for cell, methods in by_cell(lines):
        of_cell = methods.get("all", [])
        if not of_cell:
            continue
        if cell.startswith((_NOISE, _RINGS)):
            shares.append((cell, *_share(cell, of_cell)))
        else:
            rows += [(cell, *row) for row in _against(of_cell)]
    yield Table(
        "Small tables: root mean square error of partial correlations and AUC of their size, less "
        "those of others on the same table (mean, its standard error); behind by one at most",
        (
            "cell",
            "against",
            "tables",
            "error",
            "its error",
            "difference",
            "SE",
            "AUC",
            "its AUC",
            "AUC difference",
            "AUC's SE",
            "met",
        ),
        tuple(rows),
    )
    yield Table(
        "No selected edge in at least 95 % of tables of noise, and one in at least 90 % of rings",
        ("cell", "tables", "share of empty graphs", "mean number of edges", "of them true", "met"),
        tuple(shares),
    )


def _compare(
    truth: Truth, num_rows: int, fraction: float, seed: int, others: Mapping[str, Callable[[], Any]]
) -> Values:
    X = truth.sample(num_rows, fraction, np.random.default_rng(seed))
    estimator, values = fitted(TruncatedGaussianVNCE, X)
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    scale = filled.std(axis=0)
    lasso = GraphicalLassoCV().fit(filled / scale).precision_
    found: dict[str, Any] = {
        "": _scores(estimator.precision_, truth),
        _LASSO: _scores(lasso, truth),
    }
    for name, make in others.items():
        found[name] = _scores(make().fit(X).precision_, truth)
    return {**values, **found}


def _scores(precision: FloatArray, truth: Truth) -> list[float]:
    """Return the error of partial correlations, and the AUC of their size."""
    found = scaled_interaction((precision + precision.T) / 2)
    error = np.sqrt(np.mean(pairs(found - scaled_interaction(truth.precision)) ** 2))
    is_edge = np.abs(truth.precision) > 1e-9
    return [float(error), float(edge_roc(np.abs(found), is_edge).auc or math.nan)]


def _edges(truth: Truth, num_rows: int, seed: int) -> Values:
    X = truth.sample(num_rows, 0.0, np.random.default_rng(seed))
    estimator, values = fitted(TruncatedGaussianVNCE, X)
    selected = [edge for edge in estimator.edges_ if edge.selected]
    true = sum(abs(truth.precision[edge.source, edge.target]) > 1e-9 for edge in selected)
    return {**values, "selected": len(selected), "true": int(true)}


def _against(lines: Sequence[Line]) -> Iterator[list[object]]:
    ours = values_of(lines, "")
    for name in (_LASSO, *(x for x in _OTHERS if x in lines[0].values)):
        theirs = values_of(lines, name)
        difference = (ours - theirs).mean(axis=0)
        error = spread(ours - theirs) / math.sqrt(len(lines))
        met = bool(difference[0] <= error[0] and difference[1] >= -error[1])
        mean, other = ours.mean(axis=0), theirs.mean(axis=0)
        row: list[object] = [name, len(lines)]
        for i in (0, 1):
            row += [float(x[i]) for x in (mean, other, difference, error)]
        yield [*row, yes_or_no(met) if len(lines) > 1 else ""]


def _share(cell: str, lines: Sequence[Line]) -> list[object]:
    selected = values_of(lines, "selected")
    empty = float((selected == 0).mean())
    met = empty >= _EMPTY if cell.startswith(_NOISE) else 1 - empty >= _NOT_EMPTY
    true = float(values_of(lines, "true").mean())
    return [len(lines), empty, float(selected.mean()), true, yes_or_no(met)]
