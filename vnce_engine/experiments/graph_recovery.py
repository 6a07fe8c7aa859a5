"""Edge recovery from incomplete tables of a known truncated Gaussian (Figure 5 of the paper).

Data sets of a ring and of a graph with hubs, d = 20 and n = 1000, lose 0 to 50 % of their cells
completely at random; every estimator ranks the pairs, and the ranking is scored against the truth.
Source: Rhodes and Gutmann (2019), Section 5.2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vnce_engine.experiments.experiment import Part, Row, Scalar, SummaryTable
from vnce_engine.experiments.recovery_estimators import ESTIMATORS
from vnce_engine.metrics import edge_roc
from vnce_engine.progress import FitCancelledError, OnStep
from vnce_engine.result import FitStatus, FitStep
from vnce_engine.simulate import (
    hub_precision,
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

FloatArray = NDArray[np.float64]

GRAPHS: dict[str, Callable[[int, np.random.Generator], FloatArray]] = {
    "ring": ring_precision,
    "hub": hub_precision,
}
SCORES = ("auc_abs", "auc_signed")


def simulate(
    graph: str, fraction: float, seed: int, num_columns: int = 20, num_rows: int = 1000
) -> tuple[FloatArray, FloatArray]:
    """Return the true K (d, d) and a table (n, d) that has lost a `fraction` of its cells.

    One generator of `seed` draws the graph, the rows and the mask, so that one seed gives the same
    graph and rows whatever the fraction.
    """
    rng = np.random.default_rng(seed)
    precision = GRAPHS[graph](num_columns, rng)
    X = sample_truncated_gaussian(precision, num_rows, rng)
    return precision, mask_completely_at_random(X, fraction, rng)


@dataclass(frozen=True)
class GraphRecovery:
    """The experiment; a part is one data set of one graph with one share of missing cells.

    Data set i is `simulate(..., seed + i)`.
    """

    name: ClassVar[str] = "graph-recovery"

    graphs: tuple[str, ...] = ("ring", "hub")
    fractions: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    num_data_sets: int = 10
    estimators: tuple[str, ...] = tuple(ESTIMATORS)
    num_columns: int = 20
    num_rows: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for field, known in (("graphs", GRAPHS), ("estimators", ESTIMATORS)):
            for name in getattr(self, field):
                if name not in known:
                    raise ValueError(f"`{field}` must be among {', '.join(known)}, got {name!r}")

    @classmethod
    def quick(cls, seed: int = 0) -> "GraphRecovery":
        """Return a version of two minutes on two cores."""
        return cls(
            fractions=(0.0, 0.3, 0.5),
            num_data_sets=3,
            estimators=("vnce", "nce-mean", "nce-mean-paper"),
            seed=seed,
        )

    def parts(self) -> tuple[Part, ...]:
        """Return a part for every graph, share of missing cells and data set."""
        seconds = sum(ESTIMATORS[name].seconds for name in self.estimators)
        return tuple(
            Part(f"{graph}, {fraction:.0%} missing, data set {i}", seconds)
            for graph, fraction, i in self._cells()
        )

    def run(self, index: int, on_step: OnStep | None = None) -> tuple[Row, ...]:
        """Fit every estimator to the data set of a part; a row each.

        Rows hold AUCs by |K_ij| and by K_ij, the mean squared error of K_ij over pairs, and how
        the fit ended.
        """
        graph, fraction, data_set = self._cells()[index]
        truth, X = simulate(graph, fraction, self.seed + data_set, self.num_columns, self.num_rows)
        rows = []
        for done, name in enumerate(self.estimators):
            report = _within(on_step, done, len(self.estimators), name)
            K, status = ESTIMATORS[name].fit(X, report)
            if status == FitStatus.CANCELLED:
                raise FitCancelledError
            rows.append(
                {
                    "graph": graph,
                    "missing": fraction,
                    "data_set": data_set,
                    "estimator": name,
                    **_scores(K, truth),
                    "status": status,
                }
            )
        return tuple(rows)

    def summarise(self, rows: Sequence[Row]) -> tuple[SummaryTable, ...]:
        """Return medians and quartiles of every cell, and differences from the first estimator."""
        return (self._medians(rows), self._differences(rows))

    def _cells(self) -> list[tuple[str, float, int]]:
        return [
            (graph, fraction, i)
            for i in range(self.num_data_sets)
            for graph in self.graphs
            for fraction in self.fractions
        ]

    def _medians(self, rows: Sequence[Row]) -> SummaryTable:
        lines: list[tuple[Scalar, ...]] = []
        for graph, fraction, name in self._groups():
            values = _of(rows, graph, fraction, name)
            if not values:
                continue
            line: list[Scalar] = [graph, fraction, name, len(values)]
            for score in SCORES:
                low, median, high = np.quantile(
                    [value[score] for value in values], (0.25, 0.5, 0.75)
                )
                line += [float(median), float(low), float(high)]
            line.append(float(np.median([value["mse"] for value in values])))
            lines.append(tuple(line))
        columns = _columns("", "_q1", "_q3")
        return SummaryTable(
            "medians",
            "Area under the ROC curve by |K| and by K: medians and quartiles over data sets",
            (*columns, "mse"),
            tuple(lines),
        )

    def _differences(self, rows: Sequence[Row]) -> SummaryTable:
        """Return mean paired differences: by how much the first estimator is ahead."""
        first, *others = self.estimators
        lines: list[tuple[Scalar, ...]] = []
        for graph, fraction, name in self._groups():
            if name not in others:
                continue
            ours = {row["data_set"]: row for row in _of(rows, graph, fraction, first)}
            pairs = [
                (ours[row["data_set"]], row)
                for row in _of(rows, graph, fraction, name)
                if row["data_set"] in ours
            ]
            if len(pairs) < 2:
                continue
            line: list[Scalar] = [graph, fraction, name, len(pairs)]
            for score in SCORES:
                ahead = np.array([_number(a[score]) - _number(b[score]) for a, b in pairs])
                line += [float(ahead.mean()), float(ahead.std(ddof=1) / len(pairs) ** 0.5)]
            lines.append(tuple(line))
        columns = _columns("_ahead", "_se")
        return SummaryTable(
            "differences",
            f"By how much {first} is ahead of each other estimator: mean over data sets, "
            "standard error",
            columns,
            tuple(lines),
        )

    def _groups(self) -> list[tuple[str, float, str]]:
        return [
            (graph, fraction, name)
            for graph in self.graphs
            for fraction in self.fractions
            for name in self.estimators
        ]


def _columns(*endings: str) -> tuple[str, ...]:
    of_scores = (f"{score}{ending}" for score in SCORES for ending in endings)
    return ("graph", "missing", "estimator", "data_sets", *of_scores)


def _scores(K: FloatArray, truth: FloatArray) -> dict[str, Scalar]:
    pairs = np.triu_indices(len(K), k=1)
    return {
        "auc_abs": edge_roc(np.abs(K), truth != 0).auc,
        "auc_signed": edge_roc(K, truth != 0).auc,
        "mse": float(np.mean((K - truth)[pairs] ** 2)),
    }


def _of(rows: Sequence[Row], graph: str, fraction: float, name: str) -> list[Row]:
    wanted = (graph, fraction, name)
    return [row for row in rows if (row["graph"], row["missing"], row["estimator"]) == wanted]


def _number(value: Scalar) -> float:
    assert isinstance(value, float)  # a score: both graphs have edges and gaps
    return value


def _within(on_step: OnStep | None, done: int, total: int, name: str) -> OnStep | None:
    """Return `on_step` for the fit of one estimator out of several."""
    if on_step is None:
        return None

    def report(step: FitStep) -> bool | None:
        fraction = (done + step.fraction) / total
        return on_step(FitStep(name, fraction, step.iteration, step.objective))

    return report
