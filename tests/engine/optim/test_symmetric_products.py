"""Half of a symmetric product, and its mirror image, is the whole."""

import pytest
import torch

from vnce_engine.optim.symmetric_products import WeightedSquares, quadratics

# Fewer lines than a panel has, as many, one more, and several panels with a rest.
SIZES = [1, 21, 40, 41, 80, 130]


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("size", SIZES)
def test_quadratics_are_those_of_the_whole_matrix(size: int, generator: torch.Generator) -> None:
    half = torch.randn(size, size, dtype=torch.float64, generator=generator)
    columns = torch.randn(size, 7, dtype=torch.float64, generator=generator)
    before = columns.clone()
    expected = torch.einsum("ib,ij,jb->b", columns, half + half.mT, columns)
    found = quadratics(half + half.mT, columns)
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12 * size**2)
    assert torch.equal(columns, before)


@pytest.mark.parametrize("size", SIZES)
def test_weighted_squares_add_up_to_a_symmetric_matrix(
    size: int, generator: torch.Generator
) -> None:
    squares = WeightedSquares(torch.ones(size, size, dtype=torch.float64))
    expected = torch.zeros(size, size, dtype=torch.float64)
    for num_columns in (5, 3):
        columns = torch.randn(size, num_columns, dtype=torch.float64, generator=generator)
        weights = torch.randn(num_columns, dtype=torch.float64, generator=generator)
        squares.add(columns, weights)
        expected += torch.einsum("b,ib,jb->ij", weights, columns, columns)
    total = squares.total()
    assert torch.allclose(total, expected, rtol=1e-12, atol=1e-12)
    assert torch.allclose(total, total.mT, rtol=1e-12, atol=1e-12)
