"""The E-step: its draws, their weights, and the objective that they make of VNCE."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, special
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch.special import ndtri

from tests.engine.contrastive.incomplete_blocks import (
    augmented_of,
    block_of,
    five_cells,
    rows_of_many_masks,
)
from vnce_engine.contrastive.noise import CopulaNoise, ProductTruncatedNormal
from vnce_engine.contrastive.posterior import complete
from vnce_engine.contrastive.row_blocks import Block
from vnce_engine.contrastive.truncated_sample import ContrastiveSample, data_blocks, noise_blocks
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.gibbs import FloatArray
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import sample_truncated_gaussian

# Standard errors within which a Monte-Carlo mean must be.
MULTIPLE = 5
# Sums of some hundred terms of order one in doubles.
ROUNDING = 1e-11
MEANS = {
    "near zero": (0.5, -0.2),
    "at zero": (0.0, 0.0),
    "30 spreads above": (30.0, 30.0),
    "40 spreads below": (-40.0, -40.0),
    "one far below, one above": (-40.0, 3.0),
    "one above, one far below": (3.0, -40.0),
    "one below, one above": (-5.0, 2.0),
}


def redrawn(block: Block, generator: torch.Generator) -> Block:
    """Return the block with other uniforms, independent of each other."""
    levels = torch.randint(1, 2**31 - 1, block.levels.shape, generator=generator)
    return replace(block, levels=levels.to(torch.int32))


def log_integral(log_density: Callable[[float], float]) -> float:
    """Return the log of the integral over [0, inf) of a log-concave density."""
    grid = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 2001)])
    values = [log_density(z) for z in grid]
    at = int(np.argmax(values))
    found = optimize.minimize_scalar(
        lambda z: -log_density(z),
        bounds=(grid[max(at - 1, 0)], grid[at + 1]),
        method="bounded",
        options={"xatol": 1e-12},
    )
    mode, top = float(found.x), float(-found.fun)

    def excess(z: float) -> float:
        return log_density(z) - top + 45  # what lies lower is no part of a double

    first = optimize.brentq(excess, 0.0, mode) if excess(0.0) < 0 else 0.0
    last = optimize.brentq(excess, mode, 1e5)
    parts = [
        integrate.quad(lambda z: math.exp(log_density(z) - top), *ends, epsrel=1e-10, limit=200)[0]
        for ends in ((first, mode), (mode, last))
    ]
    return top + math.log(sum(parts))


def log_phi_of_two(precision: FloatArray, pull: FloatArray) -> float:
    """Return the log integral of exp(-½ zᵀQz + bᵀz) over z >= 0 in the plane."""

    def inner(z: float) -> float:
        mean = (pull[1] - precision[1, 0] * z) / math.sqrt(precision[1, 1])
        own = pull[0] * z - 0.5 * precision[0, 0] * z**2
        return own + 0.5 * mean**2 + float(special.log_ndtr(mean))

    return log_integral(inner) + 0.5 * math.log(2 * math.pi / precision[1, 1])


def relative_weights(block: Block) -> Tensor:
    """Return each draw's weight (k, b) over the mean weight of its row."""
    return block.draw_weight * block.num_draws


@pytest.mark.slow
@pytest.mark.parametrize("pull", [-2000.0, -40.0, -1.0, 0.0, 1.0, 40.0])
def test_every_draw_of_one_missing_cell_weighs_the_integral_of_phi(pull: float) -> None:
    precision = np.array([[1.6, 0.5], [0.5, 1.2]])
    augmented = augmented_of(precision, np.array([0.4, pull]))
    block = block_of(np.array([[0.8, np.nan]]), 50)
    complete(block, augmented)

    def log_density(z: float) -> float:
        row = np.array([0.8, z, 1.0])
        return float(-0.5 * row @ augmented.numpy() @ row)

    expected = torch.full((50, 1), log_integral(log_density), dtype=torch.float64)
    torch.testing.assert_close(block.log_ratios(augmented), expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(block.draw_weight, torch.full_like(expected, 1 / 50))


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.3, -0.3, 0.9, -0.9, 0.99, -0.99])
@pytest.mark.parametrize("where", MEANS)
def test_the_mean_weight_of_two_missing_cells_is_the_integral_of_phi(
    where: str, correlation: float
) -> None:
    mean = np.array(MEANS[where])
    missing = np.linalg.inv([[1.0, correlation], [correlation, 1.0]])
    # An observed cell at 0.7 takes its share of the pull, and h gives the rest.
    coupling, observed = np.array([0.4, -0.6]), 0.7
    pull = missing @ mean
    precision = np.block(
        [[np.array([[1.5]]), coupling[np.newaxis]], [coupling[:, np.newaxis], missing]]
    )
    linear = np.concatenate([[0.2], pull + coupling * observed])
    augmented = augmented_of(precision, linear)
    num_draws = 4000
    block = block_of(np.array([[observed, np.nan, np.nan]]), num_draws)

    complete(block, augmented)

    at_zero = 0.2 * observed - 0.5 * 1.5 * observed**2 - 0.3
    expected = log_phi_of_two(missing, pull) + at_zero
    error = float(torch.expm1(block.log_ratios(augmented)[0, 0] - expected))
    standard_error = float(relative_weights(block).std()) / math.sqrt(num_draws)
    # The rest is the quadrature's.
    assert abs(error) < MULTIPLE * standard_error + 1e-8
    # Small enough to tell a wrong weight.
    assert standard_error < 0.05


def second_moments(cells: FloatArray) -> FloatArray:
    """Return cells (n, m) and their products."""
    pairs = itertools.combinations_with_replacement(range(cells.shape[1]), 2)
    return np.column_stack([cells, *[cells[:, i] * cells[:, j] for i, j in pairs]])


@pytest.mark.parametrize("kind", ["ring", "attracting", "repelling", "both"])
def test_weighted_draws_have_the_moments_of_a_gibbs_chain(kind: str) -> None:
    precision, linear = five_cells(kind)
    observed, n = 0.9, 10_000
    block = block_of(np.array([[observed, *np.full(5, np.nan)]]), n)
    complete(block, augmented_of(precision, linear))
    statistics = second_moments(block.draws[1:6, :, 0].numpy().T)
    weight = block.draw_weight[:, 0].numpy()
    mean = weight @ statistics
    # Of a ratio of means, by the delta method.
    variance = weight**2 @ (statistics - mean) ** 2

    # Correlations of such cells vanish over 30 sweeps.
    chain = sample_truncated_gaussian(
        precision[1:, 1:],
        n,
        np.random.default_rng(3),
        linear=linear[1:] - precision[1:, 0] * observed,
        thinning=30,
    )
    expected = second_moments(chain)
    variance = variance + expected.var(axis=0) / n

    assert (np.abs(mean - expected.mean(axis=0)) < MULTIPLE * np.sqrt(variance)).all()
    # The draws alone are no sample of it: their weights are needed, and are not far from even.
    assert 1 / (n * (weight**2).sum()) > 0.8


def test_cells_far_above_zero_have_the_gaussian_conditional() -> None:
    precision, _ = five_cells("both")
    centre = 60 + np.arange(6.0)
    augmented = augmented_of(precision, precision @ centre)
    row = np.full(6, np.nan)
    row[2] = 61.0
    block = block_of(row[np.newaxis], 40)

    complete(block, augmented)

    missing = [0, 1, 3, 4, 5]
    own = precision[np.ix_(missing, missing)]
    mean = centre[missing] - np.linalg.solve(own, precision[missing, 2] * (61.0 - centre[2]))
    factor = np.linalg.cholesky(own)
    standard = ndtri(block.uniforms[:, :, 0]).numpy()  # (m, k)
    cells = mean[:, np.newaxis] + np.linalg.solve(factor.T, standard)
    np.testing.assert_allclose(block.draws[missing, :, 0].numpy(), cells, rtol=1e-10)
    torch.testing.assert_close(
        relative_weights(block), torch.ones(40, 1).double(), rtol=1e-10, atol=0
    )
    log_phi = -0.5 * (row[2] - centre[2]) ** 2 / np.linalg.inv(precision)[2, 2]
    log_phi += 0.5 * centre @ precision @ centre - 0.3
    log_phi += 0.5 * (5 * math.log(2 * math.pi) - np.linalg.slogdet(own)[1])
    assert float(block.log_ratios(augmented)[0, 0]) == pytest.approx(log_phi, rel=1e-12)


def test_the_ratio_of_noise_proposals_has_the_integral_of_phi_for_its_mean() -> None:
    precision, linear = five_cells("both")
    precision, linear = precision[:3, :3], linear[:3]
    augmented = augmented_of(precision, linear)
    num_copies = 4000
    block = block_of(np.array([[0.6, np.nan, np.nan]]), num_copies, is_noise=True)
    block.log_noise += -0.4
    complete(block, augmented)
    ratio = torch.exp(block.log_ratios(augmented)[0])
    pull = linear[1:] - precision[1:, 0] * 0.6
    log_phi = log_phi_of_two(precision[1:, 1:], pull)
    log_phi += linear[0] * 0.6 - 0.5 * precision[0, 0] * 0.6**2 - 0.3
    standard_error = float(ratio.std()) / math.sqrt(num_copies)
    assert abs(float(ratio.mean()) - math.exp(log_phi + 0.4)) < MULTIPLE * standard_error
    assert 0 < standard_error < 0.01 * float(ratio.mean())


def nce_value(block: Block, augmented: Tensor, log_nu: float) -> Tensor:
    """Return the sum of a block's terms in NCE, marginals by quadrature; two columns.

    Rows that lack a cell are integrated over it by Gauss and Legendre's rule.
    """
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(120))
    highest = 12.0
    nodes, log_weights = 0.5 * highest * (nodes + 1), torch.log(0.5 * highest * weights)
    rows = block.draws[:, 0].expand(len(nodes), -1, -1).clone()  # (nodes, 3, b)
    copies = block.num_rows // block.num_owners
    columns = block.missing[0].long().repeat(copies)  # at most one a row; 2 where none
    lacking = (columns < 2).nonzero().flatten()
    rows[:, columns[lacking], lacking] = nodes.unsqueeze(1)
    log_phi = -0.5 * torch.einsum("gib,ij,gjb->gb", rows, augmented, rows)
    marginal = (log_phi + log_weights.unsqueeze(1)).logsumexp(dim=0)
    log_ratio = torch.where(columns < 2, marginal, log_phi[0]) - block.log_noise - log_nu
    return logsigmoid(-log_ratio if block.is_noise else log_ratio).sum()


def test_at_its_own_theta_the_gradient_of_vnce_is_that_of_nce() -> None:
    """The mean over independent draws is within 5 of its standard errors of the exact gradient.

    A row lacks at most one cell, so that its posterior is drawn from exactly. (With more a data row
    differs by the error of self-normalised weights, O(1/k), and a noise row by the variance of its
    one weight.)
    """
    rng = np.random.default_rng(5)
    X = rng.gamma(2.0, 0.5, size=(200, 2))
    is_missing = rng.random(200) < 0.6
    X[np.flatnonzero(is_missing), rng.integers(2, size=int(is_missing.sum()))] = np.nan
    observations = Observations.from_array(X)
    noise = CopulaNoise.fit(ProductTruncatedNormal.fit(observations), observations)
    generator = torch.Generator().manual_seed(1)
    rows = torch.arange(200)
    sample = ContrastiveSample.of(
        tuple(data_blocks(observations, rows, noise, 3, generator)),
        tuple(
            noise_blocks(observations, rows, 4, noise, lambda n: open_uniforms((n, 2), generator))
        ),
    )
    augmented = augmented_of(np.array([[1.5, 0.7], [0.7, 1.2]]), np.array([0.8, 0.3]))
    values, gradients = [], []
    for _ in range(100):
        again = ContrastiveSample.of(
            tuple(redrawn(block, generator) for block in sample.data),
            tuple(redrawn(block, generator) for block in sample.noise),
        )
        for block in again.blocks:
            complete(block, augmented)
        value, gradient = again.terms(augmented, Progress(None))
        values.append(value)
        gradients.append(gradient)

    variable = augmented.clone().requires_grad_()
    exact = sum(nce_value(block, variable, math.log(sample.nu)) for block in sample.blocks)
    (exact_gradient,) = torch.autograd.grad(exact, variable)

    # The value is the same for any draws; the rest is the quadrature's.
    torch.testing.assert_close(torch.stack(values), exact.detach().expand(100), rtol=1e-9, atol=0)
    stacked = torch.stack(gradients)
    standard_error = stacked.std(dim=0) / math.sqrt(len(gradients))
    error = (stacked.mean(dim=0) - exact_gradient).abs()
    assert (error <= MULTIPLE * standard_error + 1e-9 * exact_gradient.abs()).all()
    # Small enough to tell a wrong gradient, and the corner's, of c alone, is exact.
    assert (standard_error < 0.02 * exact_gradient.abs().max()).all()
    assert standard_error[-1, -1] < 1e-12


def test_draws_depend_on_theta_and_uniforms_alone() -> None:
    precision, linear = five_cells("both")
    here, there = augmented_of(precision, linear), augmented_of(2 * precision, linear - 1)
    blocks = [block_of(rows_of_many_masks(30, 6), 4, seed) for seed in (0, 0, 1)]
    for block in blocks:
        complete(block, here)
    first, again, other = (block.draws.clone() for block in blocks)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    complete(blocks[0], there)
    assert not torch.equal(blocks[0].draws, first)
    complete(blocks[0], here)
    assert torch.equal(blocks[0].draws, first)
    assert torch.equal(blocks[0].log_ratio_offset, blocks[1].log_ratio_offset)
    assert torch.equal(blocks[0].draw_weight, blocks[1].draw_weight)


@pytest.mark.parametrize("is_noise", [False, True])
@pytest.mark.parametrize("num_columns", [3, 20, 90])
def test_an_indefinite_k_gives_nan_to_rows_that_lack_what_it_is_indefinite_on(
    num_columns: int, is_noise: bool
) -> None:
    values = np.ones((4, num_columns))
    values[1, :2] = values[2, 1:] = np.nan
    precision = np.eye(num_columns)
    precision[-2, -1] = precision[-1, -2] = -2.0
    precision[0, 1] = precision[1, 0] = 0.5
    augmented = augmented_of(precision, np.zeros(num_columns))
    block = block_of(values, 3, is_noise=is_noise)
    complete(block, augmented)
    is_nan = block.log_ratios(augmented).view(-1, 4).isnan()
    assert is_nan.all(dim=0).tolist() == [False, False, True, False]
    assert is_nan.any(dim=0).tolist() == [False, False, True, False]
