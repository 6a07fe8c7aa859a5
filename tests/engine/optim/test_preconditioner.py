"""The preconditioner inverts the curvature of normal rows."""

import itertools

import numpy as np
import pytest
import torch

from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.row_curvature import RowCurvature
from vnce_engine.penalties.penalty import PenaltyCurvature
from vnce_engine.runtime.progress import Progress


def normal_rows(mean: torch.Tensor, factor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return nodes (d + 1, b) and weights (b,) of a Gauss-Hermite rule for a normal vector.

    Five nodes a coordinate are exact for polynomials of degree nine; the curvature has four.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    points = torch.tensor(list(itertools.product(nodes, repeat=len(mean)))).mT
    products = torch.tensor([np.prod(w) for w in itertools.product(weights, repeat=len(mean))])
    rows = mean.unsqueeze(1) + factor @ points
    return torch.cat([rows, torch.ones(1, rows.shape[1]).double()]), products / products.sum()


@pytest.mark.parametrize("has_linear", [True, False])
def test_it_inverts_the_curvature_of_normal_rows(has_linear: bool) -> None:
    mean = torch.tensor([3.0, 0.5, 1.0], dtype=torch.float64)
    factor = torch.tensor([[0.4, 0, 0], [0.3, 0.9, 0], [-0.2, 0.1, 0.6]], dtype=torch.float64)
    rows = normal_rows(mean, factor)
    zero = torch.zeros(3, 3, dtype=torch.float64)
    constraints = Constraints(has_linear, torch.zeros(3, dtype=torch.float64))
    is_free = constraints.estimated()
    penalty = PenaltyCurvature(
        zero, torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    )
    curvature = RowCurvature([rows], penalty, is_free)
    direction = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    direction = (direction + direction.mT) * is_free

    product = curvature.product(direction, Progress(None))
    solution = curvature.preconditioner(constraints, is_sparse=False)(product)

    # M carries a relative ridge of 1e-10, and the operator holds products of two of its entries.
    draws, weights = rows
    condition = float(torch.linalg.cond((draws * weights) @ draws.mT))
    torch.testing.assert_close(solution, direction, rtol=0, atol=1e-10 * condition**2)
