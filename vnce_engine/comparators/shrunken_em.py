"""EM of a Gaussian, regular whatever the number of rows, by which transforms are judged.

The M-step maximises with an inverse-Wishart prior worth d² / n rows, that have the identity for
their covariance, columns standardised: hardly any where rows are many, so that columns that nearly
depend on each other are told from others, and as many as there are where columns are as many.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.comparators.gaussian_em import Spread, fit_gaussian, observed_log_likelihoods
from vnce_engine.comparators.standardised import StandardisedTable
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.definiteness import inverse
from vnce_engine.runtime.progress import Progress

FloatArray = NDArray[np.float64]

_MAX_ITERATIONS = 100
# In nats a row; what it leaves is little beside what transforms differ by.
_TOLERANCE = 1e-4


def log_densities_of_others(Y: FloatArray, others: FloatArray, progress: Progress) -> FloatArray:
    """Return the log density (m,) of other rows (m, d) by a fit to Y (n, d), NaN where missing."""
    table = StandardisedTable.of(Observations.from_array(Y))
    num_rows, d = table.X.shape
    prior_rows = d**2 / num_rows

    def shrunken(second: Tensor) -> Spread:
        identity = torch.eye(d, dtype=second.dtype)
        covariance = (num_rows * second + prior_rows * identity) / (num_rows + prior_rows)
        precision = inverse(covariance)
        penalty = 0.5 * prior_rows / num_rows * (precision.trace() - torch.logdet(precision))
        return Spread(covariance, precision, float(penalty))

    fit = fit_gaussian(
        table,
        max_iterations=_MAX_ITERATIONS,
        tolerance=_TOLERANCE,
        progress=progress,
        span=None,
        m_step=shrunken,
    )
    standardised = (others - table.mean.numpy()) / table.scale.numpy()
    log_density = observed_log_likelihoods(standardised, fit.mean, fit.spread.precision)
    units: FloatArray = ~np.isnan(others) @ np.log(table.scale.numpy())
    return log_density - units
