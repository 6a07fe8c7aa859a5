"""From a precision matrix to ranked edges."""

import numpy as np
from numpy.typing import NDArray

from vnce_engine.inference.metrics import partial_correlation, scaled_interaction
from vnce_engine.inference.result import Edge


def ranked_edges(
    precision: NDArray[np.float64],
    num_pairwise: NDArray[np.int64],
    threshold: float,
    inclusion: NDArray[np.float64] | None = None,
    *,
    is_positive_definite: bool,
) -> list[Edge]:
    """Return all pairs of variables, the largest |scaled interaction| first.

    Ties keep the order of the columns. A pair is selected by `EdgeRule.THRESHOLD`: if its |partial
    correlation| is at least `threshold`, unless its interaction is exactly zero; of an indefinite
    K, which has no partial correlations, none is.
    `inclusion` (d, d) is the share of half-samples with each edge, NaN where it is not known.
    """
    interaction = scaled_interaction(precision)
    correlation = partial_correlation(interaction, is_positive_definite=is_positive_definite)
    rows, columns = np.triu_indices(len(precision), k=1)
    order = np.argsort(-np.abs(interaction[rows, columns]), kind="stable")
    return [
        Edge(
            source=int(i),
            target=int(j),
            precision=float(precision[i, j]),
            scaled_interaction=float(interaction[i, j]),
            partial_correlation=float(correlation[i, j]),
            selected=bool(precision[i, j] != 0 and abs(correlation[i, j]) >= threshold),
            n_pairwise=int(num_pairwise[i, j]),
            inclusion=None if inclusion is None else _known(inclusion[i, j]),
        )
        for i, j in zip(rows[order], columns[order], strict=True)
    ]


def _known(share: float) -> float | None:
    return None if np.isnan(share) else float(share)
