"""How often 95 % intervals hold the true partial correlation, and how many edges found are false.

Tables of the truncated Gaussian, on graphs with and without a linear term, are fitted by the
default estimator; every pair's interval and verdict is held against the truth.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vnce_engine.estimators.seeds import numbered_generator
from vnce_engine.estimators.truncated_gaussian import TruncatedGaussianVNCE
from vnce_engine.experiments.experiment import (
    Clock,
    Part,
    Row,
    Scalar,
    SummaryTable,
    check_known,
)
from vnce_engine.inference.metrics import scaled_interaction
from vnce_engine.inference.result import Edge, Verdict
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.checks import check_count, check_fraction, check_seed
from vnce_engine.runtime.progress import FitCancelledError, OnStep, within
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.simulate import (
    hub_precision,
    mask_completely_at_random,
    random_precision,
    ring_precision,
    sample_truncated_gaussian,
    star_precision,
)

FloatArray = NDArray[np.float64]

GRAPHS: dict[str, Callable[[int, np.random.Generator], FloatArray]] = {
    "ring": ring_precision,
    "hub": hub_precision,
    "random": random_precision,
    "star": star_precision,
}
LINEARS = ("zero", "free")
# Range of h where it is free, uniform.
_H = (-0.5, 1.0)
# A graph, the linear term, the number of rows and the share of missing cells.
Cell = tuple[str, str, int, float]

_CELL_COLUMNS = ("graph", "linear", "n", "missing")
# By summary: shares of a table's pairs, each by its counts of pairs in part and whole.
_SHARES = {
    "coverage": {
        "edges": ("edges_covered", "edges"),
        "others": ("others_covered", "others"),
    },
    "discoveries": {
        "false": ("false", "found"),
        "power": ("true", "edges"),
        "absent": ("absent_others", "others"),
        "undecided": ("undecided", "pairs"),
    },
}
_MEANS = ("linear_found", "standard_error", "seconds")
_TITLES = {
    "coverage": "Share of 95 % intervals that hold the truth, of edges and of other pairs: mean "
    "over tables and its standard error; share of fits that have a linear term as the table does; "
    "mean standard error of a pair; mean CPU seconds",
    "discoveries": "Share of false edges among those found, of edges found, of other pairs found "
    "absent, of pairs left undecided: mean over tables and its standard error",
}


@dataclass(frozen=True)
class Coverage:
    """The experiment; a part is a batch of data sets of one graph, size and share of missing cells.

    Data set i has the same graph at every size, and the same rows at every share of missing cells.
    """

    name: ClassVar[str] = "coverage"

    graphs: tuple[str, ...] = tuple(GRAPHS)
    linears: tuple[str, ...] = LINEARS
    """Of the tables: "zero" is h = 0, "free" is h uniform on [-0.5, 1]; fits choose by rows."""
    sample_sizes: tuple[int, ...] = (200, 500, 1_000, 5_000)
    fractions: tuple[float, ...] = (0.0, 0.3, 0.5)
    num_data_sets: int = 300
    num_columns: int = 10
    batch: int = 25
    """Data sets of a part."""
    seed: int = 0
    clock: Clock | None = field(default=None, compare=False, repr=False)
    """Returns CPU seconds; the engine has no clock of its own."""
    checkpoint: Checkpoint | None = field(default=None, compare=False, repr=False)
    """Of an interrupted run of the part that is to go on."""

    def __post_init__(self) -> None:
        check_count("num_data_sets", self.num_data_sets)
        check_count("num_columns", self.num_columns, least=3)
        check_count("batch", self.batch)
        check_seed("seed", self.seed)
        for size in self.sample_sizes:
            check_count("sample_sizes", size)
        for fraction in self.fractions:
            check_fraction("fractions", fraction)
        check_known("graphs", self.graphs, GRAPHS)
        check_known("linears", self.linears, LINEARS)

    @classmethod
    def quick(cls, seed: int = 0) -> "Coverage":
        """Return a version of two minutes on two cores."""
        return cls(
            graphs=("ring", "random"),
            sample_sizes=(200, 500),
            fractions=(0.0, 0.3),
            num_data_sets=10,
            batch=5,
            seed=seed,
        )

    def parts(self) -> tuple[Part, ...]:
        """Return a part for every batch of tables of every cell."""
        return tuple(
            Part(
                f"{graph}, h {linear}, n = {n}, {fraction:.0%} missing, "
                f"data sets {tables[0]} to {tables[-1]}",
                len(tables) * _seconds(n, fraction, self.num_columns),
            )
            for (graph, linear, n, fraction), tables in self._batches()
        )

    def run(self, index: int, on_step: OnStep | None = None) -> tuple[Row, ...]:
        """Return a row for every table of a part: counts of its pairs, see `judge`."""
        cell, tables = self._batches()[index]
        checkpoint = self.checkpoint or Checkpoint()
        checkpoint.begin_fit(repr((self, index)))
        return tuple(
            checkpoint.once(
                partial(
                    self._row,
                    cell,
                    table,
                    within(on_step, position, len(tables), f"data set {table}"),
                    checkpoint,
                )
            )
            for position, table in enumerate(tables)
        )

    def summarise(self, rows: Sequence[Row]) -> tuple[SummaryTable, ...]:
        """Return of every cell how intervals cover, and what verdicts say.

        Tables without intervals are counted and left out.
        """
        by_cell: dict[tuple[Scalar, ...], list[Row]] = {cell: [] for cell in self._cells()}
        for row in rows:
            by_cell[tuple(row[column] for column in _CELL_COLUMNS)].append(row)
        filled = {cell: members for cell, members in by_cell.items() if members}
        return tuple(_summary(name, filled) for name in _SHARES)

    def _cells(self) -> list[Cell]:
        return [
            (graph, linear, n, fraction)
            for graph in self.graphs
            for linear in self.linears
            for n in self.sample_sizes
            for fraction in self.fractions
        ]

    def _batches(self) -> list[tuple[Cell, range]]:
        """Return the parts: all cells' first tables, then all cells' next ones."""
        return [
            (cell, range(first, min(first + self.batch, self.num_data_sets)))
            for first in range(0, self.num_data_sets, self.batch)
            for cell in self._cells()
        ]

    def _row(
        self, cell: Cell, table: int, on_step: OnStep | None, checkpoint: Checkpoint
    ) -> dict[str, Scalar]:
        graph, linear, n, fraction = cell
        truth, X = simulate(
            graph, linear, n, fraction, self.num_columns, numbered_generator(self.seed, table)
        )
        started = None if self.clock is None else self.clock()
        model = TruncatedGaussianVNCE(random_state=table)
        model.fit(X, on_step=on_step, checkpoint=checkpoint)
        if model.status_ is FitStatus.CANCELLED:
            raise FitCancelledError
        seconds = None if self.clock is None or started is None else self.clock() - started
        return {
            **dict(zip(_CELL_COLUMNS, cell, strict=True)),
            "data_set": table,
            **judge(scaled_interaction(truth), model.edges_),
            "status": str(model.status_),
            "reason": model.no_uncertainty_,
            "linear_found": int(model.linear_choice_ == linear),
            "seconds": seconds,
        }


def simulate(
    graph: str,
    linear: str,
    num_rows: int,
    fraction: float,
    num_columns: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the true K (d, d) and a table (n, d) that has lost a `fraction` of its cells."""
    precision = GRAPHS[graph](num_columns, rng)
    h = rng.uniform(*_H, num_columns) if linear == "free" else np.zeros(num_columns)
    X = sample_truncated_gaussian(precision, num_rows, rng, linear=h)
    return precision, mask_completely_at_random(X, fraction, rng)


def judge(truth: FloatArray, edges: Sequence[Edge]) -> dict[str, Scalar]:
    """Return counts of pairs by what their intervals and verdicts say of the `truth`.

    `truth` (d, d) has the true partial correlations, exactly 0 where there is no edge. Counts are
    None, but for those of the truth, where the fit says nothing of its edges.
    """
    rho = np.array([truth[edge.source, edge.target] for edge in edges])
    is_edge = rho != 0
    counts: dict[str, Scalar] = {
        "pairs": len(edges),
        "edges": int(is_edge.sum()),
        "others": int((~is_edge).sum()),
    }
    found = ("edges_covered", "others_covered", "found", "true", "false", "absent_others")
    if any(edge.verdict is None for edge in edges):
        return {**counts, **dict.fromkeys((*found, "undecided", "standard_error"))}
    lower, upper, error = (
        np.array([getattr(edge, name) for edge in edges], dtype=np.float64)
        for name in ("lower", "upper", "standard_error")
    )
    is_covered = (lower <= rho) & (rho <= upper)
    present, absent, undecided = (
        np.array([edge.verdict is verdict for edge in edges])
        for verdict in (Verdict.PRESENT, Verdict.ABSENT, Verdict.UNDECIDED)
    )
    of = (
        is_covered & is_edge,
        is_covered & ~is_edge,
        present,
        present & is_edge,
        present & ~is_edge,
        absent & ~is_edge,
    )
    return {
        **counts,
        **{name: int(which.sum()) for name, which in zip(found, of, strict=True)},
        "undecided": int(undecided.sum()),
        "standard_error": float(error.mean()),
    }


def _summary(name: str, by_cell: Mapping[tuple[Scalar, ...], Sequence[Row]]) -> SummaryTable:
    means = {"coverage": _MEANS, "discoveries": ()}[name]
    shares = (f"{share}{ending}" for share in _SHARES[name] for ending in ("", "_se"))
    lines: list[tuple[Scalar, ...]] = []
    for cell, rows in by_cell.items():
        judged = [row for row in rows if row["undecided"] is not None]
        line: list[Scalar] = [*cell, len(judged), len(rows) - len(judged)]
        for part, whole in _SHARES[name].values():
            line += _mean_share(judged, part, whole)
        lines.append((*line, *(_mean(_values(judged, column)) for column in means)))
    columns = (*_CELL_COLUMNS, "tables", "without", *shares, *means)
    return SummaryTable(name, _TITLES[name], columns, tuple(lines))


def _mean_share(rows: Sequence[Row], part: str, whole: str) -> list[Scalar]:
    """Return the mean over tables of part / whole, and its standard error.

    The error is that over tables, as the pairs of one table depend on each other. Of no edges found
    none is false; otherwise a table without any of the whole has no share.
    """
    counts, totals = _values(rows, part), _values(rows, whole)
    has_share = (totals > 0) | (whole == "found")
    shares = counts[has_share] / np.maximum(totals[has_share], 1)
    error = float(shares.std(ddof=1)) / math.sqrt(len(shares)) if len(shares) > 1 else None
    return [_mean(shares), error]


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if len(values) else None


def _values(rows: Sequence[Row], key: str) -> FloatArray:
    return np.array([row[key] for row in rows if row[key] is not None], dtype=np.float64)


def _seconds(num_rows: int, fraction: float, num_columns: int) -> float:
    """Return about the CPU seconds of a fit, as measured at ten columns; they grow with d²."""
    return (0.5 + 5e-4 * num_rows) * (1 + 4 * fraction) * (num_columns / 10) ** 2
