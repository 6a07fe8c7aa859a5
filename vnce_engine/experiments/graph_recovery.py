"""Edge recovery from incomplete tables of a known truncated Gaussian (Figure 5 of the paper).

Data sets of a ring and of a graph with hubs, d = 20 and n = 1000, lose 0 to 50 % of their cells
completely at random; every estimator ranks the pairs, and the ranking is scored against the truth.
Source: Rhodes and Gutmann (2019), Section 5.2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vnce_engine.experiments.experiment import (
    Clock,
    Part,
    Row,
    Scalar,
    SummaryTable,
    check_known,
)
from vnce_engine.experiments.recovery_estimators import ESTIMATORS
from vnce_engine.experiments.recovery_summary import differences, medians
from vnce_engine.inference.metrics import edge_roc
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.checks import check_count, check_fraction, check_seed
from vnce_engine.runtime.progress import FitCancelledError, OnStep, within
from vnce_engine.runtime.reports import FitStatus
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


def compare(
    truth: FloatArray,
    X: FloatArray,
    estimators: Sequence[str],
    on_step: OnStep | None = None,
    clock: Clock | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[dict[str, Scalar]]:
    """Fit every named estimator to a table X (n, d) whose K is `truth` (d, d); a line each.

    A line holds AUCs by |K_ij| and by K_ij, the mean squared error of K_ij over pairs, seconds by
    the `clock` (None without one), how the fit ended, and why an estimator refused the table. With
    the checkpoint of an interrupted comparison of the same,
    `Checkpoint.load(step.checkpoint.dump())`, it goes on from there; seconds are those since.
    Raises `FitCancelledError` if `on_step` returns True.
    """
    checkpoint = checkpoint or Checkpoint()

    def line(position: int, name: str) -> dict[str, Scalar]:
        report = within(on_step, position, len(estimators), name)
        started = None if clock is None else clock()
        scores, status, reason = _fit_and_score(name, truth, X, report, checkpoint)
        return {
            "estimator": name,
            **scores,
            "seconds": None if clock is None or started is None else clock() - started,
            "status": status,
            "reason": reason,
        }

    return [
        checkpoint.once(partial(line, position, name)) for position, name in enumerate(estimators)
    ]


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
    """Names in `ESTIMATORS`; summaries compare the first with the others."""
    num_columns: int = 20
    num_rows: int = 1000
    seed: int = 0
    clock: Clock | None = field(default=None, compare=False, repr=False)
    """Returns CPU seconds; the engine has no clock of its own."""
    checkpoint: Checkpoint | None = field(default=None, compare=False, repr=False)
    """Of an interrupted run of the part that is to go on."""

    def __post_init__(self) -> None:
        for name in ("num_data_sets", "num_columns", "num_rows"):
            check_count(name, getattr(self, name))
        check_seed("seed", self.seed)
        for fraction in self.fractions:
            check_fraction("fractions", fraction)
        check_known("graphs", self.graphs, GRAPHS)
        check_known("estimators", self.estimators, ESTIMATORS)

    @classmethod
    def quick(cls, seed: int = 0) -> "GraphRecovery":
        """Return a version of two minutes on two cores."""
        return cls(
            fractions=(0.0, 0.3, 0.5),
            num_data_sets=5,
            estimators=(
                "vnce",
                "nce-mean",
                "nce-mean-penalised",
                "nce-zero",
                "mc-mle-natural",
                "score-matching",
                "gaussian-em",
            ),
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
        """Return a row for every estimator on the data set of a part, see `compare`."""
        graph, fraction, i = self._cells()[index]
        truth, X = simulate(graph, fraction, self.seed + i, self.num_columns, self.num_rows)
        checkpoint = self.checkpoint or Checkpoint()
        checkpoint.begin_fit(repr((self, index)))
        lines = compare(truth, X, self.estimators, on_step, self.clock, checkpoint)
        return tuple({"graph": graph, "missing": fraction, "data_set": i, **line} for line in lines)

    def summarise(self, rows: Sequence[Row]) -> tuple[SummaryTable, ...]:
        """Return medians and quartiles of every cell, and differences from the first estimator."""
        groups = [
            (graph, fraction, name)
            for graph in self.graphs
            for fraction in self.fractions
            for name in self.estimators
        ]
        return (medians(rows, groups), differences(rows, groups, self.estimators[0]))

    def _cells(self) -> list[tuple[str, float, int]]:
        return [
            (graph, fraction, i)
            for i in range(self.num_data_sets)
            for graph in self.graphs
            for fraction in self.fractions
        ]


def _fit_and_score(
    name: str, truth: FloatArray, X: FloatArray, on_step: OnStep | None, checkpoint: Checkpoint
) -> tuple[dict[str, Scalar], str, str | None]:
    unscored: dict[str, Scalar] = dict.fromkeys(("auc_abs", "auc_signed", "mse"))
    try:
        K, status = ESTIMATORS[name].fit(X, on_step, checkpoint)
    except UnusableCheckpointError:
        raise
    except ValueError as refusal:  # such as: too few complete rows
        return unscored, "refused", str(refusal)
    if status is FitStatus.CANCELLED:
        raise FitCancelledError
    if not np.isfinite(K).all():
        return unscored, str(status), "the estimate is not finite"
    pairs = np.triu_indices(len(K), k=1)
    scores: dict[str, Scalar] = {
        "auc_abs": edge_roc(np.abs(K), truth != 0).auc,
        "auc_signed": edge_roc(K, truth != 0).auc,
        "mse": float(np.mean((K - truth)[pairs] ** 2)),
    }
    return scores, str(status), None
