"""Whether the default, which chooses a penalty, loses against no penalty and the best ridge."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from benchmarks.validity.simulated import DEFAULT_GRAPHS, Truth, pairs
from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.inference.metrics import scaled_interaction

FloatArray = NDArray[np.float64]

PART = "default"
# The least edges/truth by the rows from which it holds.
_LEAST_EDGE_RATIO = {20_000: 0.97, 5_000: 0.93, 1_000: 0.85}
_MOST_RMSE_RATIO = 1.1
_MOST_FALSE_STANDARD_ERRORS = 2.0
_QUICK_RIDGES = (3.0, 1.0, 0.3, 0.1, 0.03)
_RIDGES = (100.0, 30.0, 10.0, *_QUICK_RIDGES, 0.01)


def measurements(extent: Extent) -> Iterator[Measurement]:
    """Yield the tables: every graph at every number of rows."""
    rows = (300, 1_000, 5_000, 20_000) if extent.full else (300, 1_000, 5_000)
    for graph, make_truth in DEFAULT_GRAPHS.items():
        for num_rows in rows:
            for fraction in (0.0, 0.3) if extent.full else (0.0,):
                num_seeds = 5 if extent.full else 1
                for seed in range(num_seeds):
                    truth = make_truth(np.random.default_rng((2, seed)))
                    cell = f"{graph} n={num_rows} {fraction:.0%}"
                    ridges = _RIDGES if extent.full else _QUICK_RIDGES
                    run = partial(_measure, truth, num_rows, fraction, seed, ridges)
                    yield Measurement(cell, seed, "all", run)


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """Yield what the default does to edges and errors, and false interactions of chains."""
    rows, false_rows = [], []
    for cell, methods in by_cell(lines):
        of_cell = methods.get("all", [])
        if not of_cell:
            continue
        rows.append((cell, *_summary(cell, of_cell)))
        if cell.startswith("chain"):
            false_rows.append((cell, *_false(of_cell)))
    yield Table(
        "Default: mean edge, by its true sign, over mean |true edge| at least .85, .93 and .97 "
        "from n = 1,000, 5,000 and 20,000 on; root mean square error of K (columns scaled to "
        "K_ii = 1) at most 1.1 times the better of no penalty and the ridge whose strength is best "
        "by the truth",
        (
            "cell",
            "tables",
            "edges/truth",
            "rmse",
            "no penalty",
            "best ridge (strength)",
            "rmse over the better",
            "penalties chosen",
            "met",
        ),
        tuple(rows),
    )
    yield Table(
        "Chains: |partial correlation| of true non-edges in sampling standard errors, 1/sqrt(n); "
        "root mean square of a and c at most 2",
        ("cell", "tables", "a and c", "all others", "largest", "a and b / truth", "met"),
        tuple(false_rows),
    )


def _measure(
    truth: Truth, num_rows: int, fraction: float, seed: int, ridges: Sequence[float]
) -> Values:
    X = truth.sample(num_rows, fraction, np.random.default_rng(seed))
    default, values = fitted(TruncatedGaussianVNCE, X)
    linear = default.linear_choice_
    true = pairs(truth.precision)
    edges = pairs(default.precision_)[truth.is_edge]
    signs = np.sign(true[truth.is_edge])
    found = pairs(scaled_interaction(default.precision_))
    no_penalty = TruncatedGaussianVNCE(linear=linear, penalty=None)
    return {
        **values,
        "linear": linear,
        "penalty": f"{default.penalty_kind_} {default.penalty_ or 0:.3g}",
        "edge_ratio": float((edges * signs).sum() / np.abs(true).sum()),
        "errors": root_mean_square_error(default.precision_, truth),
        "no_penalty": root_mean_square_error(no_penalty.fit(X).precision_, truth),
        "ridges": [
            root_mean_square_error(_ridge(linear, strength).fit(X).precision_, truth)
            for strength in ridges
        ],
        "strengths": list(ridges),
        "false": [float(x) for x in found[~truth.is_edge]],
        # Of a chain: b with a, on which it depends, and c with a, on which it does not.
        "pc_ab": float(found[0]),
        "pc_ac": float(found[1]),
        "true_ab": float(pairs(scaled_interaction(truth.precision))[0]),
    }


def _ridge(linear: Any, strength: float) -> Any:
    return TruncatedGaussianVNCE(linear=linear, penalty=strength, penalty_kind="ridge")


def root_mean_square_error(precision: FloatArray, truth: Truth) -> float:
    """Return the root mean square error of K on and above the diagonal, true K_ii scaled to 1."""
    scale = 1 / np.sqrt(np.diagonal(truth.precision))
    difference = (precision - truth.precision) * np.outer(scale, scale)
    return float(np.sqrt(np.mean(difference[np.triu_indices(len(scale))] ** 2)))


def _summary(cell: str, lines: Sequence[Line]) -> list[object]:
    num_rows = int(cell.split("n=")[1].split()[0])
    edge_ratio = float(values_of(lines, "edge_ratio").mean())
    default = _root_mean_square(values_of(lines, "errors"))
    no_penalty = _root_mean_square(values_of(lines, "no_penalty"))
    # One strength for all tables of the cell: the best of each would be told by its noise.
    ridges = np.sqrt((values_of(lines, "ridges") ** 2).mean(axis=0))
    best, ridge = lines[0].values["strengths"][int(ridges.argmin())], float(ridges.min())
    ratio = default / min(no_penalty, ridge)
    least = next((x for rows, x in _LEAST_EDGE_RATIO.items() if num_rows >= rows), -math.inf)
    met = ratio <= _MOST_RMSE_RATIO and edge_ratio >= least
    penalties = ", ".join(str(line.values["penalty"]) for line in lines)
    figures = (edge_ratio, default, no_penalty, f"{ridge:.3g} ({best:g})", ratio)
    return [len(lines), *figures, penalties, yes_or_no(met)]


def _false(lines: Sequence[Line]) -> list[object]:
    in_errors = math.sqrt(int(lines[0].cell.split("n=")[1].split()[0]))
    a_and_c = _root_mean_square(values_of(lines, "pc_ac")) * in_errors
    false = values_of(lines, "false") * in_errors
    a_and_b = float(values_of(lines, "pc_ab").mean() / lines[0].values["true_ab"])
    met = a_and_c <= _MOST_FALSE_STANDARD_ERRORS
    figures = (a_and_c, _root_mean_square(false), float(np.abs(false).max()), a_and_b)
    return [len(lines), *figures, yes_or_no(met)]


def _root_mean_square(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
