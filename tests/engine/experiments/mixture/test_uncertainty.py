"""Sandwich standard errors, against a model in which they are known."""

import math

import torch
from torch import Tensor

from vnce_engine.experiments.mixture.uncertainty import PluggedIn, neighbourhood


def normal_sample(n: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return 2 + 3 * torch.randn(n, dtype=torch.float64, generator=generator).exp()


def test_standard_errors_of_a_normal_fit_are_the_moments_own() -> None:
    x = normal_sample(400)
    mean, sd = x.mean(), x.std(correction=0)

    def log_density(parameters: Tensor) -> Tensor:
        return -parameters[1] - 0.5 * ((x - parameters[0]) / parameters[1].exp()).square()

    near = neighbourhood([log_density], torch.stack([mean, sd.log()]))
    assert near.standard_errors is not None
    # Of the mean s / sqrt(n), of log s sqrt((kurtosis - 1) / 4n), whatever x is distributed as.
    # Variances are over n - 1, as everywhere.
    kurtosis = ((x - mean) / sd).pow(4).mean()
    expected = torch.stack([sd, ((kurtosis - 1) / 4).sqrt()]) / math.sqrt(399)
    torch.testing.assert_close(near.standard_errors, expected, rtol=1e-10, atol=0)
    assert near.gradient.norm() < 1e-12
    assert near.largest_step is not None
    assert near.largest_step < 1e-10


def test_a_missing_step_is_told_in_standard_errors() -> None:
    x = normal_sample(400)
    se = x.std() / 20

    def minus_square(parameters: Tensor) -> Tensor:
        return -0.5 * (x - parameters[0]).square()

    near = neighbourhood([minus_square], (x.mean() + 0.3 * se).unsqueeze(0))
    assert near.largest_step is not None
    torch.testing.assert_close(near.largest_step, 0.3, rtol=1e-6, atol=0)


def test_independent_parts_add_their_variances() -> None:
    x, y = normal_sample(400), normal_sample(900)

    def of(sample: Tensor, parameters: Tensor) -> Tensor:
        return -0.5 * (sample - parameters[0]).square()

    middle = (x.mean() + y.mean()) / 2
    near = neighbourhood([lambda p: of(x, p), lambda p: of(y, p)], middle.unsqueeze(0))
    assert near.standard_errors is not None
    expected = 0.5 * (x.var() / 400 + y.var() / 900).sqrt()
    torch.testing.assert_close(near.standard_errors[0], expected, rtol=1e-10, atol=0)


def test_a_number_taken_from_the_data_beforehand_adds_what_rows_do_to_it() -> None:
    x = normal_sample(400)
    square = x.square().mean()

    def of(at: Tensor) -> Tensor:
        mean, plugged_in = at
        return -0.5 * (x - mean - plugged_in).square()

    plugged_in = PluggedIn(square, x.square() - square)
    near = neighbourhood([of], (x.mean() - square).unsqueeze(0), plugged_in)
    assert near.standard_errors is not None
    expected = ((x - x.square()).var() / 400).sqrt()
    torch.testing.assert_close(near.standard_errors[0], expected, rtol=1e-10, atol=0)


def test_where_the_objective_is_not_concave_there_is_no_standard_error() -> None:
    x = normal_sample(10)
    near = neighbourhood([lambda p: (x - p[0]).square()], torch.zeros(1, dtype=torch.float64))
    assert (near.standard_errors, near.largest_step) == (None, None)
