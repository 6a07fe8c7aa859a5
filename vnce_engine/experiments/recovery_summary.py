"""Summaries of graph recovery: every cell's medians, and who is ahead of whom."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vnce_engine.experiments.experiment import Row, Scalar, SummaryTable

FloatArray = NDArray[np.float64]
# A graph, a share of missing cells and an estimator.
Group = tuple[str, float, str]

_SCORES = ("auc_abs", "auc_signed", "mse")
_GROUP_COLUMNS = ("graph", "missing", "estimator")


def medians(rows: Sequence[Row], groups: Sequence[Group]) -> SummaryTable:
    """Return medians and quartiles of AUCs and squared errors, and median seconds, of each group.

    Data sets that the estimator refused are counted and left out of them.
    """
    lines: list[tuple[Scalar, ...]] = []
    for group in groups:
        members = _of(rows, group)
        if not members:
            continue
        scored = [row for row in members if row["mse"] is not None]
        line: list[Scalar] = [*group, len(scored), len(members) - len(scored)]
        for score in _SCORES:
            line += _quartiles(_values(scored, score))
        line.append(_quartiles(_values(scored, "seconds"))[0])
        lines.append(tuple(line))
    of_scores = (f"{score}{ending}" for score in _SCORES for ending in ("", "_q1", "_q3"))
    return SummaryTable(
        "medians",
        "Area under the ROC curve by |K| and by K, squared error of K: medians and quartiles over "
        "data sets; median CPU seconds",
        (*_GROUP_COLUMNS, "data_sets", "refused", *of_scores, "seconds"),
        tuple(lines),
    )


def differences(rows: Sequence[Row], groups: Sequence[Group], first: str) -> SummaryTable:
    """Return by how much the estimator `first` is better than each other one, data set by data set.

    A difference is positive where `first` is better: of AUCs, first minus other; of squared errors,
    other minus first.
    """
    lines: list[tuple[Scalar, ...]] = []
    for graph, fraction, name in groups:
        if name == first:
            continue
        ours = {
            row["data_set"]: row
            for row in _of(rows, (graph, fraction, first))
            if row["mse"] is not None
        }
        pairs = [
            (ours[row["data_set"]], row)
            for row in _of(rows, (graph, fraction, name))
            if row["mse"] is not None and row["data_set"] in ours
        ]
        if len(pairs) < 2:
            continue
        line: list[Scalar] = [graph, fraction, name, len(pairs)]
        for score in _SCORES:
            gain = _values([a for a, _ in pairs], score) - _values([b for _, b in pairs], score)
            if score == "mse":
                gain = -gain
            line += [float(gain.mean()), float(gain.std(ddof=1) / math.sqrt(len(gain)))]
        lines.append(tuple(line))
    of_scores = (f"{score}{ending}" for score in _SCORES for ending in ("_ahead", "_se"))
    return SummaryTable(
        "differences",
        f"By how much {first} is ahead of each other estimator on the same data: mean over data "
        "sets and its standard error",
        (*_GROUP_COLUMNS, "data_sets", *of_scores),
        tuple(lines),
    )


def _of(rows: Sequence[Row], group: Group) -> list[Row]:
    return [row for row in rows if (row["graph"], row["missing"], row["estimator"]) == group]


def _values(rows: Sequence[Row], key: str) -> FloatArray:
    return np.array([row[key] for row in rows if row[key] is not None], dtype=np.float64)


def _quartiles(values: FloatArray) -> list[Scalar]:
    """Return median, first and third quartile; None each without values."""
    if not len(values):
        return [None, None, None]
    return [float(value) for value in np.quantile(values, (0.5, 0.25, 0.75))]
