"""From a precision matrix to ranked edges."""

import numpy as np
from numpy.typing import NDArray

from vnce_engine.metrics import partial_correlation
from vnce_engine.result import Edge


def ranked_edges(
    precision: NDArray[np.float64],
    num_pairwise: NDArray[np.int64],
    threshold: float,
    inclusion: NDArray[np.float64] | None = None,
) -> list[Edge]:
    """Return all pairs of variables, the largest |partial correlation| first.

    Ties keep the order of the columns. An edge is selected from `threshold` on, unless its
    interaction is exactly zero. `inclusion` (d, d) is the share of half-samples with each edge.
    """
    correlation = partial_correlation(precision)
    rows, columns = np.triu_indices(len(precision), k=1)
    order = np.argsort(-np.abs(correlation[rows, columns]), kind="stable")
    return [
        Edge(
            source=int(i),
            target=int(j),
            precision=float(precision[i, j]),
            partial_correlation=float(correlation[i, j]),
            selected=bool(precision[i, j] != 0 and abs(correlation[i, j]) >= threshold),
            n_pairwise=int(num_pairwise[i, j]),
            inclusion=None if inclusion is None else float(inclusion[i, j]),
        )
        for i, j in zip(rows[order], columns[order], strict=True)
    ]
