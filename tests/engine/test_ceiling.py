"""q's mu has a ceiling: an indefinite K cannot carry a row's missing cells to infinity."""

import torch

from vnce_engine.mean_field import ceiling, complete
from vnce_engine.noise import ProductTruncatedNormal
from vnce_engine.observations import Observations
from vnce_engine.sample import data_blocks

NUM_SWEEPS = 200


def test_draws_stay_near_the_data_where_the_posterior_has_no_integral() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(20, 3, dtype=torch.float64, generator=generator) + 0.5
    observed = torch.tensor([True, False, False]).repeat(20, 1)
    observed[:10] = True
    observations = Observations(torch.where(observed, values, 0.0), observed)
    noise = ProductTruncatedNormal.fit(observations)
    (block,) = data_blocks(observations, torch.arange(20), noise, 3, generator)
    # Columns 1 and 2, missing together, pull each other up harder than K_11 and K_22 hold them:
    # each sweep would multiply their means by 4.
    augmented = torch.eye(4, dtype=torch.float64)
    augmented[1, 2] = augmented[2, 1] = -2.0

    block.ceiling = torch.full((3,), torch.inf, dtype=torch.float64)
    complete(block, augmented, 0.0, 20)
    assert block.draws.max() > 1e9  # without a ceiling

    block.ceiling = ceiling(observations)
    completion = complete(block, augmented, 0.0, NUM_SWEEPS)

    highest = ceiling(observations)
    assert torch.isfinite(completion.control).all()
    # sigma is 1, so that a mean exceeds mu by less than a half-normal's mean where mu > 0.
    assert (block.expected_rows(block.cells())[:-1] < highest.unsqueeze(1) + 0.8).all()
    # Every uniform of the draws is below 1 - 2^-40 or so: under 8 sigma.
    assert (block.draws[:-1] < highest.view(-1, 1, 1) + 8).all()
