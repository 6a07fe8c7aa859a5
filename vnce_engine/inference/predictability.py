"""How much of each variable the others explain: R², with intervals.

The share 1 - E Var(x_j | x_-j) / Var(x_j), of the transformed columns, by the errors of the fitted
model's conditional means (Haslbeck and Waldorp, 2018, "How well do network models predict
observations?", Behav. Res. Methods 50). A cell's error is asked of rows in which it is observed;
what is missing beside it is drawn given all that is observed in the row. The error is least at the
true conditional mean, so that to first order estimating that costs nothing, and the interval is
that of a ratio of two means over rows.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.data.clusters import Codes, error_of_mean, renumbered
from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.interval import Interval


def squared_errors(model: QuadraticModel, rows: Tensor, *, is_truncated: bool) -> Tensor:
    """Return (x_j - E[x_j | x_-j])² of complete rows (n, d) of a model of the columns."""
    diagonal = model.precision.diagonal()
    error = (rows @ model.precision - model.linear) / diagonal
    if is_truncated:
        sigma = diagonal.rsqrt().expand_as(rows)
        error = rows - truncated_normal.moments(rows - error, sigma)[0]
    return error.square()


def shares_explained(
    values: NDArray[np.float64], errors: NDArray[np.float64], clusters: Codes | None = None
) -> list[Interval | None]:
    """Return R² of each column of values (n, d), NaN where missing, by squared errors (n, d).

    `clusters` (n,) has the cluster of each row where rows are dependent.
    None where fewer than three rows have the column, or all have the same.
    """
    return [_share(*column, clusters) for column in zip(values.T, errors.T, strict=True)]


def _share(
    values: NDArray[np.float64], errors: NDArray[np.float64], clusters: Codes | None
) -> Interval | None:
    observed = ~np.isnan(values)
    num_rows = int(observed.sum())
    spreads = (values[observed] - values[observed].mean()) ** 2 if num_rows else np.zeros(0)
    if num_rows < 3 or not spreads.any():
        return None
    left = errors[observed].mean() / spreads.mean()
    change = (errors[observed] - left * spreads) / spreads.mean()
    own = None if clusters is None else renumbered(torch.from_numpy(clusters[observed]))
    error = error_of_mean(torch.from_numpy(change), own)
    return Interval.of(1 - float(left), error, None if own is None else int(own.max()) + 1)
