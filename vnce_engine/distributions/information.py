"""The information about theta in rows: their scores and the curvature of J_NCE, as matrices.

Theta is the upper triangle of A, p = (d + 1)(d + 2) / 2 entries: with t the p statistics -a_i a_j
(i < j) and -½ a_i² of a row a = (x, 1), log phi = theta · t. In an incomplete row T stands for
their mean under the posterior of its missing cells, the slope of log phi(x). The negative Hessian
of a row's term is h (1 - h) T Tᵀ, with h its probability of being data, less a part that vanishes
in expectation at the truth.
"""

import torch
from torch import Tensor


def statistics(rows: Tensor) -> Tensor:
    """Return t (p, b) of rows (d + 1, b)."""
    i, j = upper_triangle(len(rows), rows.device)
    products = rows.index_select(0, i).mul_(rows.index_select(0, j))
    products[i == j] *= 0.5
    return products.neg_()


def upper_triangle(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the row and column (p,) of each entry of theta, A having `size` lines."""
    i, j = torch.triu_indices(size, size, device=device)
    return i, j


def to_slope(gradient: Tensor) -> Tensor:
    """Return the slope in theta (..., p) of gradients under tr(A B): a pair has two entries."""
    i, j = upper_triangle(gradient.shape[-1], gradient.device)
    return gradient[..., i, j] * (2.0 - (i == j).to(gradient.dtype))


def to_matrix(theta: Tensor, size: int) -> Tensor:
    """Return the symmetric (size, size) matrix of p entries."""
    i, j = upper_triangle(size, theta.device)
    matrix = theta.new_empty(size, size)
    matrix[i, j] = theta
    matrix[j, i] = theta
    return matrix
