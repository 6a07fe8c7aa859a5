"""The floor under K_ii: where it holds, and that a fit that meets it still settles."""

import numpy as np
import pytest
import torch

from vnce_engine import FitStatus, TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.contrastive.prepared import SMALLEST_DIAGONAL
from vnce_engine.optim.constraints import Constraints

FLOOR = torch.tensor([0.5, 0.2], dtype=torch.float64)


def matrix(*diagonal: float) -> torch.Tensor:
    return torch.diag(torch.tensor(diagonal, dtype=torch.float64)) + 0.1


def test_projection_lifts_only_what_is_below_the_floor() -> None:
    projected = Constraints(True, FLOOR).project(matrix(0.1, 0.6, -3.0))
    expected = matrix(0.1, 0.6, -3.0)
    expected[0, 0] = 0.5
    assert torch.equal(projected, expected)


def test_a_diagonal_at_the_floor_is_held_only_while_the_gradient_presses_on_it() -> None:
    constraints = Constraints(False, FLOOR)
    at_floor = constraints.project(matrix(0.1, 0.6, 0.0))
    down, up = matrix(-1.0, -1.0, 0.0), matrix(1.0, -1.0, 0.0)
    fixed_h = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=torch.bool)
    held = fixed_h.clone()
    held[0, 0] = False
    assert torch.equal(constraints.free(at_floor, down), held)
    assert torch.equal(constraints.free(at_floor, up), fixed_h)


def test_a_diagonal_off_the_floor_by_rounding_is_at_it() -> None:
    constraints = Constraints(False, FLOOR)
    moved = constraints.project(matrix(0.1, 0.6, 0.0))
    moved[0, 0] = moved[0, 0] * (1 + 2e-16)
    assert not constraints.free(moved, matrix(-1.0, -1.0, 0.0))[0, 0]


def test_a_constant_that_is_not_estimated_stays_zero() -> None:
    constraints = Constraints(True, FLOOR, has_constant=False)
    assert not constraints.estimated()[-1, -1]
    assert constraints.project(matrix(1.0, 1.0, 1.0))[-1, -1] == 0


def test_a_fit_that_meets_the_floor_still_settles_and_ends_on_it() -> None:
    rng = np.random.default_rng(17)
    X = rng.gamma(2.0, size=(300, 3))
    X[:, 1] = rng.exponential(size=300) ** 2  # heavier tails than any truncated normal's
    model = TruncatedGaussianVNCE(linear="free", penalty=1.0, random_state=0).fit(X)
    assert model.status_ is FitStatus.CONVERGED
    relative = np.diagonal(model.precision_) * X.var(axis=0)
    np.testing.assert_allclose(relative[1], SMALLEST_DIAGONAL, rtol=1e-9)
    assert (relative[[0, 2]] > SMALLEST_DIAGONAL).all()


@pytest.mark.slow
def test_steps_that_would_cross_every_floor_at_once_still_climb() -> None:
    rng = np.random.default_rng(17)
    X = np.abs(rng.normal(size=(1000, 20)))
    X[rng.random(X.shape) < 0.5] = 0.0
    model = TruncatedGaussianNCE(linear="zero", penalty=None, random_state=0).fit(X)
    assert model.status_ is FitStatus.CONVERGED
    assert model.objective_path_[-1] > model.objective_path_[0] + 1
