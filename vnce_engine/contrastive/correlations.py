"""Correlations of columns with missing cells, for noise that is near the data."""

import torch
from torch import Tensor

from vnce_engine.distributions.expected_moments import IncompleteRows

# Rows at most, and of wide tables as few as this work of their patterns' matrices allows.
_ROWS = 6_000
_WORK = 2e9
# EM ends where no correlation changes by more. Noise is noise whatever they are.
_TOLERANCE = 1e-2
_MOST_ITERATIONS = 30


def fitted_correlations(values: Tensor, observed: Tensor) -> Tensor:
    """Return correlations (d, d), positive definite, of columns of mean 0, by a few steps of EM.

    EM has d more rows of independent columns, so that few rows have regular ones. They are then
    drawn towards 0 by the share of their squares that is chance: noise that follows the very rows
    that it is to be told from leaves nothing to tell. Source: Schäfer and Strimmer (2005), "A
    shrinkage approach to large-scale covariance matrix estimation", Stat. Appl. Genet. Mol.
    Biol. 4.

    Shapes: `values` (n, d), ignored where `observed`, bool (n, d), is False.
    """
    n, d = values.shape
    num_rows = min(n, _ROWS, max(d, int(_WORK / d**3)))
    # Evenly spaced, as the table's order may be that of its values.
    index = torch.linspace(0, n - 1, num_rows, device=values.device).round().long()
    rows = IncompleteRows(torch.where(observed[index], values[index], torch.nan))
    zero = values.new_zeros(d)
    correlations = identity = torch.diag(zero + 1)
    for _ in range(_MOST_ITERATIONS):
        precision = torch.cholesky_inverse(torch.linalg.cholesky(correlations))
        second = num_rows * rows.expected(zero, precision).second + d * identity
        scale = second.diagonal().rsqrt()
        before, correlations = correlations, second * scale * scale.unsqueeze(1)
        if float((correlations - before).abs().max()) < _TOLERANCE:
            break
    return torch.lerp(correlations, identity, _share_of_chance(correlations, observed[index]))


def _share_of_chance(correlations: Tensor, observed: Tensor) -> float:
    """Return how much of the correlations' squares their variances come to, 1 at most."""
    present = observed.to(correlations.dtype)
    variances = (1 - correlations.square()).square() / (present.mT @ present).clamp(min=1)
    squares = correlations.square().fill_diagonal_(0.0).sum()
    return float((variances.fill_diagonal_(0.0).sum() / squares).nan_to_num(nan=1.0).clamp(max=1.0))
