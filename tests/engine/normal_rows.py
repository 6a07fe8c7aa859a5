"""A normal distribution of three columns, incomplete rows of it, and their marginals by SciPy."""

import math

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from vnce_engine.distributions.quadratic import QuadraticModel

COVARIANCE = np.array([[1.0, 0.6, -0.3], [0.6, 1.5, 0.2], [-0.3, 0.2, 0.8]])
MEAN = np.array([0.5, -1.0, 2.0])
NAN = math.nan
ROWS = torch.tensor(
    [[0.3, NAN, 1.0], [NAN, NAN, 2.5], [0.1, -2.0, 1.5], [1.3, NAN, 2.0]], dtype=torch.float64
)
THETA = QuadraticModel.normal(
    torch.from_numpy(MEAN), torch.linalg.inv(torch.from_numpy(COVARIANCE))
).packed()
FULL = torch.tensor([[0.3, -0.2], [1.0, 0.5]], dtype=torch.float64)


def marginal_by_scipy(rows: Tensor) -> list[float]:
    values = []
    for row in rows.numpy():
        seen = ~np.isnan(row)
        part = stats.multivariate_normal(MEAN[seen], COVARIANCE[np.ix_(seen, seen)])
        values.append(float(part.logpdf(row[seen])))
    return values
