"""Whether estimates without a penalty are the truth, whatever share of cells is missing."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

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
from benchmarks.validity.simulated import Truth, pairs, random_signs, ring
from vnce_engine import GaussianEM, GaussianVNCE, TruncatedGaussianMLE, TruncatedGaussianVNCE

FloatArray = NDArray[np.float64]

PART = "truth"
FRACTIONS = (0.0, 0.3, 0.5)
_MOST_BIAS = 0.02
_MOST_STANDARD_ERRORS = 3.0
_MOST_RMSE_RATIO = 1.2
_EDGE_RATIO = (0.97, 1.03)
# Of random networks; the same for every seed, since a bias is of one network.
_TRUTH_SEED = 5
_RING = "ring d=20 n=20000"
_PAPER = "paper's recipe, h zero"
# Who else's estimates are compared: none of them is biased by missing cells.
REFERENCES = {"vnce": "mle", "gaussian vnce": "gaussian em"}


def measurements(extent: Extent) -> Iterator[Measurement]:
    """Yield the fits: random networks, own rings, the paper's recipe."""
    full = extent.full
    num_rows, num_seeds = (50_000, 10) if full else (20_000, 4)
    linears: tuple[Literal["zero", "free"], ...] = ("zero", "free")
    for d, linear, fraction in product((5, 10) if full else (5,), linears, FRACTIONS):
        truth = random_signs(
            d, np.random.default_rng((_TRUTH_SEED, d)), free_linear=linear == "free"
        )
        cell = f"truncated d={d} h {linear} n={num_rows} {fraction:.0%}"
        methods: dict[str, Callable[[], Any]] = {
            "vnce": partial(TruncatedGaussianVNCE, linear=linear, penalty=None),
            "mle": partial(TruncatedGaussianMLE, linear=linear),
        }
        yield from _fits(cell, truth, num_rows, fraction, num_seeds, methods)
    for d, fraction in product((5, 10) if full else (5,), FRACTIONS):
        network = random_signs(d, np.random.default_rng((_TRUTH_SEED, d)), free_linear=False)
        truth = Truth(network.precision, is_far=True)
        cell = f"Gaussian d={d} n={num_rows} {fraction:.0%}"
        methods = {"gaussian vnce": partial(GaussianVNCE, penalty=None), "gaussian em": GaussianEM}
        yield from _fits(cell, truth, num_rows, fraction, num_seeds, methods)
    for fraction, seed in product(FRACTIONS, range(5 if full else 1)):
        truth = ring(20, np.random.default_rng((1, seed)))
        methods = {
            "vnce": partial(TruncatedGaussianVNCE, linear="zero", penalty=None),
            "mle": TruncatedGaussianMLE,
        }
        for name, make in methods.items():
            run = partial(_measure, make, truth, 20_000, fraction, seed)
            yield Measurement(f"{_RING} {fraction:.0%}", seed, name, run)
    truth = random_signs(5, np.random.default_rng((_TRUTH_SEED, 5)), free_linear=False)
    num_rows = 10_000 if full else 2_000
    methods = {"paper": partial(TruncatedGaussianVNCE, preset="paper")}
    cell = f"{_PAPER} d=5 n={num_rows} 30%"
    yield from _fits(cell, truth, num_rows, 0.3, num_seeds if full else 3, methods)


def tables(lines: Sequence[Line]) -> Iterator[Table]:
    """Yield biases, ratios of own rings, and the paper's recipe."""
    random_rows, ring_rows = [], []
    for cell, methods in by_cell(lines):
        for method, of_method in methods.items():
            if cell.startswith(_RING):
                ring_rows.append((cell, *_edge_ratio(method, of_method)))
            else:
                reference = methods.get(REFERENCES.get(method, ""))
                random_rows.append((cell, *_bias(method, of_method, reference)))
    yield Table(
        "Truth recovered without a penalty: every entry's bias within 3 standard errors "
        "(Student's t of the same level) or .02, and root mean square error at most 1.2 times "
        "that of maximum likelihood",
        (
            "cell",
            "method",
            "fits",
            "largest bias",
            "its SE",
            "largest bias/SE",
            "largest difference from likelihood",
            "its SE",
            "rmse, times likelihood's",
            "met",
        ),
        tuple(random_rows),
    )
    yield Table(
        "Own rings: mean edge over mean true edge, .97 to 1.03",
        ("cell", "method", "fits", "edges/truth", "SD over rings", "met"),
        tuple(ring_rows),
    )


def _fits(
    cell: str,
    truth: Truth,
    num_rows: int,
    fraction: float,
    num_seeds: int,
    methods: Mapping[str, Callable[[], Any]],
) -> Iterator[Measurement]:
    for seed in range(num_seeds):
        for name, make in methods.items():
            yield Measurement(
                cell, seed, name, partial(_measure, make, truth, num_rows, fraction, seed)
            )


def _measure(
    make: Callable[[], Any], truth: Truth, num_rows: int, fraction: float, seed: int
) -> Values:
    """Return errors of K's entries, and of h where there is one, and edges/truth."""
    X = truth.sample(num_rows, fraction, np.random.default_rng(seed))
    estimator, values = fitted(make, X)
    upper = np.triu_indices(len(truth.precision))
    errors = [*(estimator.precision_ - truth.precision)[upper]]
    if truth.linear is not None:
        errors += [*(estimator.linear_ - truth.linear)]
    true = pairs(truth.precision)
    ratio = pairs(estimator.precision_)[truth.is_edge].sum() / true[truth.is_edge].sum()
    return {**values, "errors": [float(x) for x in errors], "edge_ratio": float(ratio)}


def _bias(method: str, lines: Sequence[Line], reference: Sequence[Line] | None) -> list[object]:
    errors = values_of(lines, "errors")  # (seeds, entries)
    if len(errors) < 2:
        return [method, len(errors), *[""] * 7]
    bias, standard_error = _mean(errors)
    worst = int(np.abs(bias).argmax())
    in_errors = np.abs(bias) / standard_error
    most = float(t.ppf(norm.cdf(_MOST_STANDARD_ERRORS), len(errors) - 1))
    met = bool(((np.abs(bias) <= _MOST_BIAS) | (in_errors <= most)).all())
    row: list[object] = [
        method,
        len(errors),
        float(bias[worst]),
        float(standard_error[worst]),
        float(in_errors.max()),
    ]
    if reference is None or len(reference) != len(lines):
        return [*row, "", "", "", yes_or_no(met)]
    other = values_of(reference, "errors")
    difference, its_error = _mean(errors - other)
    largest = int(np.abs(difference).argmax())
    ratio = math.sqrt(float((errors**2).mean() / (other**2).mean()))
    met = met and ratio <= _MOST_RMSE_RATIO
    return [*row, float(difference[largest]), float(its_error[largest]), ratio, yes_or_no(met)]


def _mean(errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means over seeds (seeds, entries) and their standard errors."""
    return errors.mean(axis=0), spread(errors) / math.sqrt(len(errors))


def _edge_ratio(method: str, lines: Sequence[Line]) -> list[object]:
    ratios = values_of(lines, "edge_ratio")
    low, high = _EDGE_RATIO
    mean = float(ratios.mean())
    return [method, len(ratios), mean, float(spread(ratios)), yes_or_no(low <= mean <= high)]
