"""Units and the order of columns do not change what is found."""

import numpy as np
import pytest
import torch

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.contrastive.noise import CopulaNoise, ProductTruncatedNormal
from vnce_engine.contrastive.row_blocks import BLOCK_WIDTH
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.contrastive.truncated_sample import ContrastiveSample, data_blocks, noise_blocks
from vnce_engine.contrastive.variational_em import Cycles
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

UNITS = np.array([1e9, 1.0, 1e-9, 1e3])


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    rng = np.random.default_rng(21)
    X = sample_truncated_gaussian(ring_precision(4, rng), 200, rng)
    return mask_completely_at_random(X, 0.2, rng)


@pytest.mark.slow
@pytest.mark.parametrize("linear", ["auto", "free"])
def test_units_change_only_the_units(table: np.ndarray, linear: str) -> None:
    X = table
    reference = TruncatedGaussianVNCE(linear=linear, random_state=0).fit(X)
    scaled = TruncatedGaussianVNCE(linear=linear, random_state=0).fit(X * UNITS)

    assert scaled.penalty_ == pytest.approx(reference.penalty_, rel=1e-9)
    assert scaled.linear_choice_ == reference.linear_choice_
    back = scaled.precision_ * np.outer(UNITS, UNITS)
    np.testing.assert_allclose(back, reference.precision_, rtol=1e-6)
    np.testing.assert_allclose(
        scaled.partial_correlation_, reference.partial_correlation_, rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(scaled.linear_ * UNITS, reference.linear_, rtol=1e-6)
    np.testing.assert_allclose(scaled.impute(X * UNITS) / UNITS, reference.impute(X), rtol=1e-6)


@pytest.mark.slow
def test_the_order_of_columns_does_not_matter_when_noise_is_permuted_alike() -> None:
    rng = np.random.default_rng(22)
    complete = sample_truncated_gaussian(ring_precision(4, rng), 150, rng)
    uniforms = open_uniforms((10 * 150, 4), torch.Generator().manual_seed(3))
    order = [2, 0, 3, 1]

    def fitted(X: np.ndarray, points: torch.Tensor) -> torch.Tensor:
        observations = Observations.from_array(X)
        # A factor of correlations depends on the order of columns, unless there are none.
        marginals = ProductTruncatedNormal.fit(observations)
        noise = CopulaNoise(marginals, torch.eye(4).double())
        rows = torch.arange(len(X))
        generator = torch.Generator().manual_seed(0)
        parts = iter(points.split(10 * (BLOCK_WIDTH // 10)))

        def take(n: int) -> torch.Tensor:
            part = next(parts)
            assert len(part) == n
            return part

        sample = ContrastiveSample.of(
            tuple(data_blocks(observations, rows, noise, 1, generator)),
            tuple(noise_blocks(observations, rows, 10, noise, take)),
        )
        problem = Problem(
            observations, torch.ones(4).double(), (sample,), generator, marginals, noise, take
        )
        penalty = Penalty(0.5, PenaltyKind.ADAPTIVE, torch.ones(4).double(), len(X))
        cycles = Cycles(problem.start(has_linear=True), Progress(None))
        cycles.run(sample, penalty, problem.constraints(has_linear=True), 1e-9, 100)
        return cycles.augmented

    straight = fitted(complete, uniforms)
    permuted = fitted(complete[:, order], uniforms[:, order])
    places = [*order, 4]
    torch.testing.assert_close(permuted, straight[places][:, places], rtol=0, atol=1e-7)
