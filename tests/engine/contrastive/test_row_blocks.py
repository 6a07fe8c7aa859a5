"""How rows with missing cells lie in blocks, and what completing them leaves alone."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.engine.contrastive.incomplete_blocks import (
    augmented_of,
    block_of,
    five_cells,
    rows_of_many_masks,
)
from vnce_engine.contrastive.noise import CopulaNoise, ProductTruncatedNormal
from vnce_engine.contrastive.posterior import complete
from vnce_engine.contrastive.truncated_sample import data_blocks, noise_blocks
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.uniforms import open_uniforms

# Sums of some hundred terms of order one in doubles.
ROUNDING = 1e-11


def test_observed_cells_stay_as_they_are_and_missing_ones_are_at_least_zero() -> None:
    precision, linear = five_cells("both")
    values = rows_of_many_masks(30, 6)
    block = block_of(values, 4)
    complete(block, augmented_of(precision, linear - 3.0))
    draws = block.draws[:-1].permute(1, 2, 0).numpy()  # (k, b, d)
    observed = ~np.isnan(values)
    assert all(np.array_equal(draw[observed], values[observed]) for draw in draws)
    assert (draws >= 0).all()
    assert (draws[:, ~observed].std(axis=0) > 0).all()
    assert (block.draws[-1] == 1).all()


def test_complete_rows_need_no_draws() -> None:
    values = np.random.default_rng(0).gamma(2.0, size=(9, 4))
    observations = Observations.from_array(values)
    noise = CopulaNoise.fit(ProductTruncatedNormal.fit(observations), observations)
    generator = torch.Generator().manual_seed(0)
    (block,) = data_blocks(observations, torch.arange(9), noise, 3, generator)
    assert block.num_draws == 1
    augmented = augmented_of(1.5 * np.eye(4), np.ones(4))
    complete(block, augmented)
    rows = torch.nn.functional.pad(torch.from_numpy(values), (0, 1), value=1.0)
    log_phi = -0.5 * torch.einsum("bi,ij,bj->b", rows, augmented, rows)
    log_ratio = log_phi - noise.log_prob(torch.from_numpy(values), torch.ones(9, 4).bool())
    torch.testing.assert_close(block.log_ratios(augmented)[0], log_ratio)


def test_noise_rows_are_copies_of_the_masks_of_their_owners_in_order() -> None:
    values, num_copies = rows_of_many_masks(30, 6), 5
    observations = Observations.from_array(values)
    noise = CopulaNoise.fit(ProductTruncatedNormal.fit(observations), observations)
    taken = []

    def points(n: int) -> Tensor:
        taken.append(open_uniforms((n, 6), torch.Generator().manual_seed(3)))
        return taken[-1]

    rows = torch.arange(30).flip(0)
    (block,) = noise_blocks(observations, rows, num_copies, noise, points)

    (uniforms,) = taken
    assert sorted(block.owner[:30].tolist()) == list(range(30))
    assert block.owner.tolist() == block.owner[:30].tolist() * num_copies
    observed = observations.observed[block.owner.long()]  # (150, d)
    num_missing = (~observed[:30]).sum(dim=1).tolist()
    assert num_missing == sorted(num_missing)
    own, log_density = noise.draw(uniforms.view(num_copies, 30, 6), observed[:30])
    draws = block.draws[:-1, 0].mT
    assert torch.equal(draws[observed], own.flatten(0, 1)[observed])
    assert torch.equal(block.log_noise, log_density.flatten())
    for row in range(len(draws)):
        copy, owner = divmod(row, 30)
        columns = block.missing[:, owner].long()
        columns = columns[columns < 6]
        assert columns.tolist() == (~observed[row]).nonzero().flatten().tolist()
        used = block.uniforms[: len(columns), copy, owner]
        # A uniform is kept to 2^-31.
        torch.testing.assert_close(used, uniforms[row, columns], rtol=0, atol=2.0**-30)


@pytest.mark.parametrize("is_noise", [False, True])
def test_a_row_has_the_same_draws_beside_rows_with_more_missing_cells(is_noise: bool) -> None:
    precision, linear = five_cells("both")
    augmented = augmented_of(precision, linear)
    values = rows_of_many_masks(30, 6)
    together = block_of(values, 4, is_noise=is_noise)
    complete(together, augmented)
    assert len(set(np.isnan(values).sum(axis=1))) == 6
    copies = together.by_owner
    offsets = together.log_ratio_offset.view(-1, 30)
    weights = together.draw_weight.view(-1, 30)
    for row, own in enumerate(values):
        alone = block_of(own[np.newaxis], 4, is_noise=is_noise)
        num_missing = len(alone.missing)
        alone.levels = together.levels[:num_missing, :, row : row + 1].clone()
        complete(alone, augmented)
        for one, other in (
            (copies[:, :, row], alone.by_owner[:, :, 0]),
            (offsets[:, row], alone.log_ratio_offset.flatten()),
            (weights[:, row], alone.draw_weight.flatten()),
        ):
            torch.testing.assert_close(one, other, rtol=ROUNDING, atol=ROUNDING)
