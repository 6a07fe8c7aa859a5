"""Squared errors against sample size over many unnormalised mixtures (Figure 4 of the paper).

Source: Rhodes and Gutmann (2019), Section 4.2: true values uniform on [2, 6], nu = 1, noise
N(0, theta*²), the best of five starts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine.estimators.seeds import numbered_generator
from vnce_engine.experiments.experiment import Part, Row, Scalar, SummaryTable
from vnce_engine.experiments.mixture.data import draw_unnormalised
from vnce_engine.experiments.mixture.estimation import MixtureEstimates, estimate, random_starts
from vnce_engine.experiments.mixture.methods import UNNORMALISED
from vnce_engine.experiments.mixture.model import true_log_partition
from vnce_engine.runtime.checks import check_count, check_seed
from vnce_engine.runtime.progress import FitCancelledError, OnStep
from vnce_engine.runtime.reports import FitStep

FloatArray = NDArray[np.float64]

LOWEST, HIGHEST = 2.0, 6.0
_PARAMETERS = ("theta", "c")
# Measured CPU seconds of all three estimators from five starts, a data row and a mixture.
_SECONDS_PER_ROW = 6e-5


@dataclass(frozen=True)
class MixturePopulation:
    """The experiment; a part is a batch of true values at all sample sizes."""

    name: ClassVar[str] = "mixture-population"

    num_truths: int = 500
    sample_sizes: tuple[int, ...] = (100, 316, 1_000, 3_162, 10_000)
    num_starts: int = 5
    c_start: tuple[float, float] = (-5.0, 5.0)
    """Range of c's starting values, uniform; true values are between 2.0 and 2.9."""
    batch: int = 25
    """True values of a part."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("num_truths", "num_starts", "batch"):
            check_count(name, getattr(self, name))
        for size in self.sample_sizes:
            check_count("sample_sizes", size)
        check_seed("seed", self.seed)

    @classmethod
    def quick(cls, seed: int = 0) -> "MixturePopulation":
        """Return a version of one minute on two cores."""
        return cls(num_truths=80, sample_sizes=(100, 316, 1_000, 3_162), batch=10, seed=seed)

    def parts(self) -> tuple[Part, ...]:
        """Return a part for every batch of true values."""
        return tuple(
            Part(
                f"true values {first + 1} to {first + size}",
                _SECONDS_PER_ROW * size * sum(self.sample_sizes),
            )
            for first, size in self._batches()
        )

    def run(self, index: int, on_step: OnStep | None = None) -> tuple[Row, ...]:
        """Return a row for every true value, sample size and estimator."""
        first, size = self._batches()[index]
        rng = numbered_generator(self.seed, index)
        truth = torch.as_tensor(rng.uniform(LOWEST, HIGHEST, size))
        generator = torch.Generator().manual_seed(int(rng.integers(2**63 - 1)))
        rows: list[Row] = []
        for place, n in enumerate(self.sample_sizes):
            data = draw_unnormalised(truth, n, n, generator)
            starts = random_starts(self.num_starts * size, self.c_start, generator)
            starts = starts.view(self.num_starts, size, -1)
            for number, (name, method) in enumerate(UNNORMALISED.items()):
                done = (sum(self.sample_sizes[:place]) + n * number / len(UNNORMALISED)) / sum(
                    self.sample_sizes
                )
                if on_step is not None and on_step(FitStep(f"{name}, n = {n}", done, place, None)):
                    raise FitCancelledError
                found = estimate(method, data, starts, truth)
                rows += [
                    {"truth": first + i, "n": n, "estimator": name, **_row(i, truth, found)}
                    for i in range(size)
                ]
        return tuple(rows)

    def summarise(self, rows: Sequence[Row]) -> tuple[SummaryTable, ...]:
        """Return quantiles of the squared errors, shares of local optima, and slopes on log n."""
        return (self._errors(rows), self._slopes(rows))

    def _batches(self) -> list[tuple[int, int]]:
        starts = range(0, self.num_truths, self.batch)
        return [(first, min(self.batch, self.num_truths - first)) for first in starts]

    def _errors(self, rows: Sequence[Row]) -> SummaryTable:
        lines: list[tuple[Scalar, ...]] = []
        for n in self.sample_sizes:
            for name in UNNORMALISED:
                found = [row for row in rows if (row["n"], row["estimator"]) == (n, name)]
                if not found:
                    continue
                line: list[Scalar] = [n, name, len(found)]
                for parameter in _PARAMETERS:
                    errors = _values(found, f"squared_error_{parameter}")
                    # The nearest error that occurs: no mean of a finite and an infinite one.
                    levels = np.quantile(errors, (0.1, 0.5, 0.9), method="inverted_cdf")
                    line += [_finite(level) for level in levels]
                line += [
                    float(_values(found, "is_local").mean()),
                    float(_values(found, "local_share_of_starts").mean()),
                ]
                lines.append(tuple(line))
        quantiles = tuple(
            f"{parameter}_{level}" for parameter in _PARAMETERS for level in ("d1", "median", "d9")
        )
        columns = ("n", "estimator", "truths", *quantiles, "local", "local_share_of_starts")
        title = "Squared errors: first decile, median, ninth decile; share of local optima"
        return SummaryTable("errors", title, columns, tuple(lines))

    def _slopes(self, rows: Sequence[Row]) -> SummaryTable:
        """Return slopes of log squared error on log n: one a true value, their mean and its SE.

        The squared error of a consistent, asymptotically normal estimator is 1/n times a multiple
        of a chi-square variable, so that its logarithm falls with slope -1. A true value where an
        estimate has run away has no slope and is counted as left out.
        """
        lines: list[tuple[Scalar, ...]] = []
        for name in UNNORMALISED:
            of_method = [row for row in rows if row["estimator"] == name]
            for parameter in _PARAMETERS if of_method else ():
                slopes, left_out = _slopes_by_truth(of_method, f"squared_error_{parameter}")
                mean = se = None
                if len(slopes) > 1:
                    mean = float(slopes.mean())
                    se = float(slopes.std(ddof=1) / math.sqrt(len(slopes)))
                lines.append((name, parameter, len(slopes), mean, se, left_out))
        columns = ("estimator", "parameter", "truths", "slope", "standard_error", "left_out")
        return SummaryTable("slopes", "Slope of log squared error on log n", columns, tuple(lines))


def _row(i: int, truth: torch.Tensor, found: MixtureEstimates) -> Row:
    theta, c = float(found.theta[i]), float(found.log_partition[i])
    true_theta, true_c = float(truth[i]), float(true_log_partition(truth[i]))
    return {
        "true_theta": true_theta,
        "true_c": true_c,
        "theta": _finite(theta),
        "c": _finite(c),
        "squared_error_theta": _finite((theta - true_theta) ** 2),
        "squared_error_c": _finite((c - true_c) ** 2),
        "is_local": int(found.is_local[i]),
        "local_share_of_starts": float(found.local_share[i]),
    }


def _finite(value: float) -> float | None:
    """Return the value, or None where the estimate has run away."""
    return float(value) if math.isfinite(value) else None


def _values(rows: Sequence[Row], key: str) -> FloatArray:
    """Return the values under `key`; that of an estimate that has run away is infinite."""
    return np.array([math.inf if row[key] is None else row[key] for row in rows], dtype=np.float64)


def _slopes_by_truth(rows: Sequence[Row], key: str) -> tuple[FloatArray, int]:
    """Return the least-squares slope of every true value that has one, and how many have none.

    There is none where an error is infinite, or exactly zero, or where all are of one sample size.
    """
    by_truth: dict[Scalar, list[Row]] = {}
    for row in rows:
        by_truth.setdefault(row["truth"], []).append(row)
    slopes = []
    for group in by_truth.values():
        errors = _values(group, key)
        if len(group) > 1 and np.isfinite(errors).all() and (errors > 0).all():
            slopes.append(np.polyfit(np.log(_values(group, "n")), np.log(errors), 1)[0])
    return np.array(slopes, dtype=np.float64), len(by_truth) - len(slopes)
