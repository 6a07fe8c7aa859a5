"""Noise that is too easily told from data is reported, and its spread is the user's to choose."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from vnce_engine import FitStatus, TruncatedGaussianVNCE
from vnce_engine.contrastive.noise import CopulaNoise, ProductTruncatedNormal
from vnce_engine.contrastive.truncated_problem import FINAL_NUM_DRAWS, NUM_DRAWS, Problem
from vnce_engine.contrastive.truncated_sample import ContrastiveSample, data_blocks, noise_blocks
from vnce_engine.contrastive.variational_em import Cycles
from vnce_engine.data.observations import Observations
from vnce_engine.inference.diagnostics import diagnose_contrastive, is_separated, overlap_warnings
from vnce_engine.inference.result import Diagnostics
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


def table(num_rows: int = 150, fraction: float = 0.2) -> np.ndarray:
    rng = np.random.default_rng(19)
    X = sample_truncated_gaussian(ring_precision(5, rng), num_rows, rng)
    return mask_completely_at_random(X, fraction, rng)


@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_noise_fifty_spreads_away_is_reported_and_every_figure_stays_finite(
    fraction: float,
) -> None:
    observations = Observations.from_array(table(fraction=fraction))
    generator = torch.Generator().manual_seed(0)
    problem = Problem.prepare(observations, 10, "random", generator)
    near = problem.marginals
    far = CopulaNoise(
        ProductTruncatedNormal(near.mu + 50 * near.sigma, near.sigma), problem.noise.correlation
    )
    rows = torch.arange(observations.num_rows)
    sample = ContrastiveSample.of(
        tuple(data_blocks(problem.observations, rows, far, NUM_DRAWS, generator)),
        tuple(noise_blocks(problem.observations, rows, 10, far, problem.points)),
    )
    penalty = problem.penalty(0.3, PenaltyKind.ADAPTIVE, observations.num_rows, has_linear=False)
    cycles = Cycles(problem.start(has_linear=False), Progress(None))
    status = cycles.run(sample, penalty, problem.constraints(has_linear=False), 3e-3, 50)
    assert status is not FitStatus.NON_FINITE
    assert torch.isfinite(cycles.augmented).all()
    diagnostics = diagnose_contrastive(
        observations, sample, cycles.augmented, cycles.point, problem.inverse_k0(has_linear=False)
    )
    assert diagnostics.separated_share == 1.0
    assert diagnostics.mean_classification < 1e-6
    assert is_separated(diagnostics)
    (warning,) = overlap_warnings(diagnostics)
    assert warning.code == "noise-separated"
    assert "do not interpret them" in warning.message


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "is_far"), [(0.02, True), (1.0, False), (60.0, True)])
def test_a_result_says_whether_its_noise_overlaps_the_data(scale: float, is_far: bool) -> None:
    model = TruncatedGaussianVNCE(
        linear="zero", penalty=0.3, noise_scale=scale, random_state=0
    ).fit(table())
    codes = {warning.code for warning in model.warnings_}
    assert ("noise-separated" in codes) == is_far
    assert ("do not interpret K and c" in model.message_) == is_far
    assert np.isfinite(model.precision_).all()


def test_wider_noise_keeps_its_modes_and_stretches_about_them() -> None:
    mu, sigma = torch.tensor([2.0, -1.0]).double(), torch.tensor([0.5, 2.0]).double()
    wide = ProductTruncatedNormal(mu, sigma).widened(3.0)
    # A mode at 2 stays; where the density falls from 0 on, draws are three times as large.
    assert wide.mu.tolist() == [2.0, -3.0]
    assert wide.sigma.tolist() == [1.5, 6.0]
    uniforms = torch.tensor([[0.3, 0.3], [0.8, 0.8]]).double()
    narrow = ProductTruncatedNormal(mu, sigma).sample(uniforms)
    torch.testing.assert_close(wide.sample(uniforms)[:, 1], 3 * narrow[:, 1])


def test_wider_noise_gives_about_the_same_estimates() -> None:
    """Any noise that overlaps the data is consistent: the differences are sampling error.

    An entry of K, columns scaled, has a standard error of about 1 / sqrt(n) = .03 at n = 1000, and
    more by the noise's own share; the same data leave only the noise's. Five times .03 is ample.
    """
    X = table(1000, 0.0)
    fits = [
        TruncatedGaussianVNCE(linear="zero", penalty=None, noise_scale=s, random_state=0).fit(X)
        for s in (1.0, 1.5)
    ]
    first, second = (fit.partial_correlation_ for fit in fits)
    assert 0 < np.abs(first - second).max() < 5 / np.sqrt(1000)


def diagnostics_with(**changes: float) -> Diagnostics:
    fine = Diagnostics(
        gradient_norm=0.0,
        effective_sample_size=0.99,
        smallest_eigenvalue=0.5,
        is_positive_definite=True,
        separated_share=0.0,
        mean_classification=0.95,
        largest_interaction=0.2,
        num_rows=100,
        num_empty_rows=0,
        num_missing=10,
        num_draws=FINAL_NUM_DRAWS,
        noise_ratio=30.0,
    )
    return replace(fine, **changes)


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({}, []),
        ({"mean_classification": 0.25}, ["noise-told-apart"]),
        ({"mean_classification": 0.25, "separated_share": 0.6}, ["noise-separated"]),
        ({"mean_classification": 0.01}, ["noise-separated"]),
        ({"effective_sample_size": 0.4}, ["uneven-latent-draws"]),
    ],
)
def test_warnings_follow_the_figures(changes: dict[str, float], codes: list[str]) -> None:
    assert [warning.code for warning in overlap_warnings(diagnostics_with(**changes))] == codes
