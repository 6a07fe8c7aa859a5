"""What every family must be: a density, sampled as it says, smooth in its parameters."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.engine.normal_rows import FULL, ROWS, THETA
from vnce_engine.black_box.affine_normal import AffineNormal
from vnce_engine.black_box.network_family import NetworkFamily
from vnce_engine.distributions.gaussian import GaussianConditional
from vnce_engine.distributions.uniforms import open_uniforms


def network_weights() -> Tensor:
    family = NetworkFamily((2, 5, 4, 2))
    return 10 * family.start(torch.Generator().manual_seed(0))


# Family, alpha, rows: one latent or missing coordinate in the rows that are integrated.
FAMILIES: list[Any] = [
    pytest.param(
        AffineNormal(2, 1), torch.tensor([0.4, -1.0, 0.2, 0.3]).double(), FULL, id="affine"
    ),
    pytest.param(NetworkFamily((2, 5, 4, 2)), network_weights(), FULL, id="network"),
    pytest.param(GaussianConditional(3), THETA, ROWS[[0, 3]], id="conditional"),
]


def completed(family: Any, u: Tensor, cells: Tensor) -> Tensor:
    """Return latents z (k, n, m) whose one unknown coordinate has the values `cells` (k,)."""
    if not torch.isnan(u).any():
        return cells.view(-1, 1, 1).expand(-1, len(u), 1)
    return torch.where(torch.isnan(u), cells.view(-1, 1, 1), u)


@pytest.mark.parametrize(("family", "alpha", "u"), FAMILIES)
def test_a_family_integrates_to_one(family: Any, alpha: Tensor, u: Tensor) -> None:
    cells = torch.linspace(-30, 30, 20_001, dtype=torch.float64)
    log_q = family.log_prob(alpha, completed(family, u, cells), u)
    mass = torch.trapezoid(log_q.exp(), cells, dim=0)
    torch.testing.assert_close(mass, torch.ones_like(mass), rtol=1e-10, atol=0)


@pytest.mark.parametrize(("family", "alpha", "u"), FAMILIES)
def test_draws_are_the_quantiles_of_the_density(family: Any, alpha: Tensor, u: Tensor) -> None:
    levels = torch.tensor([0.05, 0.3, 0.5, 0.9], dtype=torch.float64)
    width = u.shape[1] if torch.isnan(u).any() else 1
    z = family.rsample(alpha, u, levels.view(-1, 1, 1).expand(-1, len(u), width))
    cells = torch.linspace(-30, 30, 20_001, dtype=torch.float64)
    density = family.log_prob(alpha, completed(family, u, cells), u).exp()
    mass = torch.cumulative_trapezoid(density, cells, dim=0)  # (cells - 1, n)
    for row in range(len(u)):
        column = int(torch.isnan(u[row]).nonzero()[0]) if width > 1 else 0
        reached = np.interp(z[:, row, column].numpy(), cells[1:].numpy(), mass[:, row].numpy())
        np.testing.assert_allclose(reached, levels.numpy(), atol=1e-5)


@pytest.mark.parametrize(("family", "alpha", "u"), FAMILIES)
def test_draws_and_density_move_smoothly_with_the_parameters(
    family: Any, alpha: Tensor, u: Tensor
) -> None:
    uniforms = torch.tensor([0.2, 0.7], dtype=torch.float64).view(2, 1, 1)
    width = u.shape[1] if torch.isnan(u).any() else 1
    uniforms = uniforms.expand(2, len(u), width)

    def both(parameters: Tensor) -> Tensor:
        z = family.rsample(parameters, u, uniforms)
        return z.sum(dim=-1) + family.log_prob(parameters, z, u)

    assert torch.autograd.gradcheck(both, alpha.clone().requires_grad_(True))


def test_observed_cells_stay_as_they_are_in_completed_rows() -> None:
    uniforms = open_uniforms((4, len(ROWS), 3), torch.Generator().manual_seed(1))
    z = GaussianConditional(3).rsample(THETA, ROWS, uniforms)
    observed = ~torch.isnan(ROWS)
    assert (z[:, observed] == ROWS[observed]).all()
    assert torch.isfinite(z).all()
