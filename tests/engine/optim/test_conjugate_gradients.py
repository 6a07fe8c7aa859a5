"""Newton's equations where they have no solution, or none that digits allow."""

import torch
from torch import Tensor

from vnce_engine.optim.conjugate_gradients import solve
from vnce_engine.runtime.progress import Progress


class Diagonal:
    """Multiplies entries (d, d) by factors, some of them zero."""

    def __init__(self, factors: Tensor) -> None:
        self.factors = factors

    def product(self, direction: Tensor, progress: Progress) -> Tensor:
        return self.factors * direction


def solved(factors: Tensor, gradient: Tensor) -> tuple[Tensor, bool]:
    return solve(gradient, Diagonal(factors), lambda residual: residual, Progress(None), 1e-12)


def test_a_diagonal_system_is_solved() -> None:
    factors = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64)
    direction, is_solved = solved(factors, torch.ones_like(factors))
    assert is_solved
    torch.testing.assert_close(direction, 1 / factors, rtol=1e-11, atol=0)


def test_a_direction_without_curvature_is_followed_as_far_as_the_preconditioner_says() -> None:
    factors = torch.zeros(2, 2, dtype=torch.float64)
    gradient = torch.tensor([[3.0, -1.0], [-1.0, 0.5]], dtype=torch.float64)
    direction, is_solved = solved(factors, gradient)
    assert not is_solved
    assert torch.equal(direction, gradient)
