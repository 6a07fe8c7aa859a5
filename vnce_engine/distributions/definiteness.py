"""Whether a precision matrix is symmetric and positive definite, and its inverse."""

import torch
from torch import Tensor

# Asymmetry allowed as rounding, relative to the largest entry.
SYMMETRY_TOLERANCE = 1e-10


def is_positive_definite(precision: Tensor) -> bool:
    """Return whether a symmetric matrix (d, d) has a Cholesky factor."""
    return bool(torch.linalg.cholesky_ex(precision).info == 0)


def inverse(precision: Tensor) -> Tensor:
    """Return K⁻¹ (d, d), exactly symmetric, of a positive definite K; NaN of any other."""
    factor, info = torch.linalg.cholesky_ex(precision)
    if info > 0:
        return torch.full_like(precision, torch.nan)
    inverted = torch.cholesky_inverse(factor)
    return 0.5 * (inverted + inverted.mT)


def smallest_scaled_eigenvalue(precision: Tensor) -> float:
    """Return the smallest eigenvalue of K (d, d), its positive diagonal scaled to 1."""
    root = precision.diagonal().rsqrt()
    return float(torch.linalg.eigvalsh(precision * torch.outer(root, root))[0])
