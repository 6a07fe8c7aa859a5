"""Scores of a fitted network on a table, by which searches compare fits: higher is better.

Both are logarithmic scores of normalised densities, whose expectation no other density than the
truth's own exceeds; c, which is estimated and could flatter a fit, has no part in them.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.comparators.gaussian_em import observed_log_likelihoods
from vnce_engine.data.observations import Observations
from vnce_engine.data.tables import known_rows
from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.imputation import missing_cells


def predictive_score(model: QuadraticModel, Y: NDArray[np.float64], ceiling: Tensor) -> float:
    """Return the mean log density of the observed cells of Y (n, d) given their row's others.

    In nats per cell. Each cell is taken for missing in turn, and its density is its factor of q
    given the cells that are left: exact in complete rows, where the sum over a row is its log
    pseudo-likelihood (Besag, 1975), and mean-field's in others. NaN where nothing is observed.
    """
    observations = Observations.from_array(Y)
    total, count = 0.0, 0
    for j in range(observations.num_columns):
        rows = observations.observed[:, j].nonzero().flatten()
        truth = observations.values[rows, j]
        hidden = _without(observations, rows, j)
        for cells in missing_cells(model, hidden, ceiling):
            own = cells.coordinate == j
            mu, sigma = cells.distribution.mu[own], cells.distribution.sigma[own]
            total += float(truncated_normal.log_prob(truth[cells.row[own]], mu, sigma).sum())
        count += len(rows)
    return total / count if count else np.nan


def likelihood_score(mean: Tensor, precision: Tensor, Y: NDArray[np.float64]) -> float:
    """Return the mean over rows of Y (n, d) of the log density of their observed cells.

    In nats per row, of N(mean, precision⁻¹), its missing cells integrated out exactly; rows with
    nothing observed are left out. NaN where nothing is observed.
    """
    rows = known_rows(Y)
    return float(observed_log_likelihoods(rows, mean, precision).mean()) if len(rows) else np.nan


def _without(observations: Observations, rows: Tensor, column: int) -> Observations:
    """Return some of the rows, a column of them missing."""
    values, observed = observations.values[rows], observations.observed[rows]
    values[:, column], observed[:, column] = 0.0, False
    return replace(observations, values=values, observed=observed)
