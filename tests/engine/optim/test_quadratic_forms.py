import pytest
import torch

from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.optim.quadratic_forms import quadratic_forms


@pytest.fixture
def model():
    return QuadraticModel(
        torch.tensor([[2.0, 0.3], [0.3, 1.5]], dtype=torch.float64),
        torch.tensor([0.4, -1.0], dtype=torch.float64),
        torch.tensor(0.7, dtype=torch.float64),
    )


@pytest.fixture
def columns():
    rows = torch.rand(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows[-1] = 1.0
    return rows


def test_columns_that_end_in_one_give_log_phi(model, columns):
    found = quadratic_forms(model.augmented(), columns)

    assert found.numpy() == pytest.approx(model.log_phi(columns[:-1].mT).numpy(), rel=1e-14)


def test_derivatives_by_the_matrix_and_by_the_columns_are_right(model, columns):
    def by_columns(free):
        return quadratic_forms(model.augmented(), free)

    def by_matrix(free):
        # A is symmetric, and so are the directions in which it is differentiated.
        return quadratic_forms(0.5 * (free + free.mT), columns)

    assert torch.autograd.gradcheck(by_columns, columns.clone().requires_grad_())
    assert torch.autograd.gradcheck(by_matrix, model.augmented().requires_grad_())
