"""Pseudo-likelihood: the sum of each column's log density given all others.

Given the other columns, x_j has the density exp(-½ K_jj t² + b_j t) on t >= 0 up to its integral,
b_j = h_j - sum_{i != j} K_ij x_i: a univariate truncated normal, whose integral is known. The sum
of the logs is concave in K and h. Source: Besag (1975).
"""

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine import truncated_normal
from vnce_engine.comparators.exponential import Parameters

FloatArray = NDArray[np.float64]


def negative_pseudo_likelihood(rows: FloatArray, theta: Parameters) -> tuple[float, Parameters]:
    """Return minus the log pseudo-likelihood of rows (d, n), nats a row, and its gradient.

    The gradient by K is that under tr(A B).
    """
    num_rows = rows.shape[1]
    diagonal = np.diagonal(theta.precision)
    x = torch.from_numpy(rows)
    pull = theta.linear[:, None] - theta.precision @ rows + diagonal[:, None] * rows
    sigma = torch.from_numpy(1 / np.sqrt(diagonal)).unsqueeze(1)
    mu = torch.from_numpy(pull) * sigma.square()
    value = -float(truncated_normal.log_prob(x, mu, sigma).sum()) / num_rows
    mean, variance = truncated_normal.moments(mu, sigma)
    # The derivative of log p by b_j is x_j - E t, by K_jj -½ (x_j² - E t²).
    residual = (x - mean).numpy()
    square = (x.square() - variance - mean.square()).numpy().mean(axis=1)
    cross = residual @ rows.T / num_rows
    gradient = 0.5 * (cross + cross.T)
    np.fill_diagonal(gradient, 0.5 * square)
    return value, Parameters(gradient, -residual.mean(axis=1))
