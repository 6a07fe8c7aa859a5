"""BFGS on many problems at once."""

import torch
from torch import Tensor

from vnce_engine.optim.batched_bfgs import maximise


def test_every_quadratic_ends_at_its_own_maximum() -> None:
    generator = torch.Generator().manual_seed(1)
    factors = torch.randn(20, 4, 4, dtype=torch.float64, generator=generator)
    hessians = factors @ factors.mT + torch.eye(4, dtype=torch.float64)
    tops = torch.randn(20, 4, dtype=torch.float64, generator=generator)

    def objective(parameters: Tensor, rows: Tensor) -> Tensor:
        away = parameters - tops[rows]
        return -0.5 * torch.einsum("bi,bij,bj->b", away, hessians[rows], away)

    found = maximise(objective, torch.zeros(20, 4, dtype=torch.float64))
    assert found.converged.all()
    # The gradient is below 1e-7 and the smallest curvature is 1.
    torch.testing.assert_close(found.parameters, tops, rtol=0, atol=4e-7)


def test_the_banana_is_climbed_from_both_sides() -> None:
    def objective(parameters: Tensor, rows: Tensor) -> Tensor:
        x, y = parameters.T
        return -((1 - x) ** 2) - 100 * (y - x**2) ** 2

    start = torch.tensor([[-1.2, 1.0], [3.0, -2.0]], dtype=torch.float64)
    found = maximise(objective, start)
    torch.testing.assert_close(found.parameters, torch.ones_like(start), rtol=0, atol=1e-5)


def test_points_where_the_objective_is_undefined_are_stepped_back_from() -> None:
    def objective(parameters: Tensor, rows: Tensor) -> Tensor:
        return (torch.log(parameters) - parameters).squeeze(1)  # undefined below 0, best at 1

    start = torch.tensor([[20.0], [0.01]], dtype=torch.float64)
    found = maximise(objective, start)
    torch.testing.assert_close(found.parameters, torch.ones_like(start), rtol=0, atol=1e-6)
