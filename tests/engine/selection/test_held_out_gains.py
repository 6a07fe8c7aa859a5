import pytest
import torch

from vnce_engine.selection.held_out_gains import has_fallen, winsorised_mean


def test_the_standard_error_of_a_gain_is_its_spread_over_tables() -> None:
    generator = torch.Generator().manual_seed(3)
    num_tables = 2000
    gains = torch.randn(num_tables, 300, dtype=torch.float64, generator=generator)
    means, errors = torch.tensor([winsorised_mean(row) for row in gains]).T
    # Four standard errors of a standard deviation; the formula itself is right to 1 / n.
    assert float(errors.mean() / means.std()) == pytest.approx(1, abs=4 / (2 * num_tables) ** 0.5)


def test_an_infinite_objective_is_certainly_worse() -> None:
    best = torch.zeros(20, dtype=torch.float64)
    gain, error = winsorised_mean(best - torch.full_like(best, -torch.inf))
    assert gain > 1e9 * error


@pytest.mark.parametrize(
    ("scores", "num_falls", "expected"),
    [
        ([3.0, 2.0, 1.0], 2, True),
        ([3.0, 2.0, 2.0], 2, False),
        ([2.0, 1.0], 2, False),
        ([1.0, 3.0, 2.0, 1.0], 2, True),
    ],
)
def test_a_path_has_fallen_after_so_many_falls_in_a_row(
    scores: list[float], num_falls: int, expected: bool
) -> None:
    assert has_fallen(scores, num_falls) is expected
