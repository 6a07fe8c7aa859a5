"""Known parameters come back within standard errors that theory gives."""

import math

import numpy as np
import pytest
import torch
from scipy.special import expit

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.contrastive.noise import ProductTruncatedNormal
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.simulate import mask_completely_at_random, sample_truncated_gaussian

NUM_ROWS = 4000
# The noise of the last cycles: three times the default ratio of 10.
FINAL_NU = 30
PRECISION = np.array([[1.6, 0.5, 0.0], [0.5, 1.2, -0.4], [0.0, -0.4, 1.4]])
LINEAR = {"zero": np.zeros(3), "free": np.array([1.0, 0.3, 0.8])}
PAIRS = np.triu_indices(3)


def statistics(x: np.ndarray, linear: str) -> np.ndarray:
    """Return the derivatives of log phi by K_ij (i <= j), by h where it is free, and by c."""
    i, j = PAIRS
    by_precision = -np.where(i == j, 0.5, 1.0) * x[:, i] * x[:, j]
    by_linear = x if linear == "free" else x[:, :0]
    return np.hstack([by_precision, by_linear, -np.ones((len(x), 1))])


def sandwich_errors(X: np.ndarray, model: TruncatedGaussianVNCE, linear: str) -> np.ndarray:
    """Return standard errors of NCE's estimates, data and noise both counted as random.

    With s the statistics and p = h(x) the class probability, the objective's gradient is
    mean_x (1 - p) s - nu mean_y p s. Its variance, over n, is V = Var_x((1 - p) s) +
    nu Var_y(p s) as there are nu n independent noise rows, and its derivative is
    -H = -(mean_x p (1 - p) s sᵀ + nu mean_y p (1 - p) s sᵀ), so that theta has the covariance
    H⁻¹ V H⁻¹ / n (Gutmann and Hyvärinen, 2012, theorem 3).
    """
    noise = ProductTruncatedNormal.fit(Observations.from_array(X))
    generator = torch.Generator().manual_seed(99)
    y = noise.sample(open_uniforms((FINAL_NU * len(X), 3), generator))
    parts = []
    for rows in (torch.from_numpy(X), y):
        log_noise = noise.log_prob(rows, torch.ones_like(rows, dtype=torch.bool)).numpy()
        x = rows.numpy()
        log_phi = x @ model.linear_ - 0.5 * np.einsum("ni,ij,nj->n", x, model.precision_, x)
        log_phi -= model.log_partition_
        parts.append((statistics(x, linear), expit(log_phi - log_noise - math.log(FINAL_NU))))
    (s_x, p_x), (s_y, p_y) = parts
    hessian = (s_x * (p_x * (1 - p_x))[:, None]).T @ s_x / len(s_x)
    hessian += FINAL_NU * (s_y * (p_y * (1 - p_y))[:, None]).T @ s_y / len(s_y)
    variance = np.cov(s_x * (1 - p_x)[:, None], rowvar=False)
    variance += FINAL_NU * np.cov(s_y * p_y[:, None], rowvar=False)
    covariance = np.linalg.solve(hessian, np.linalg.solve(hessian, variance).T) / len(X)
    return np.sqrt(np.diagonal(covariance))


@pytest.mark.parametrize("linear", ["zero", "free"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_complete_data_give_the_parameters_back(linear: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = sample_truncated_gaussian(PRECISION, NUM_ROWS, rng, linear=LINEAR[linear])
    model = TruncatedGaussianVNCE(
        linear=linear, penalty=None, noise_draws="random", tol=1e-5, random_state=seed
    ).fit(X)
    errors = sandwich_errors(X, model, linear)

    assert model.converged_
    deviation = np.abs(model.precision_ - PRECISION)[PAIRS]
    assert (deviation < 5 * errors[:6]).all()
    # The standard errors themselves must be small enough to tell a wrong answer.
    assert errors[:6].max() < 0.25
    if linear == "free":
        assert (np.abs(model.linear_ - LINEAR[linear]) < 5 * errors[6:9]).all()
    else:
        assert (model.linear_ == 0).all()


def test_missing_cells_cost_precision_but_bring_no_bias() -> None:
    """The mean over data sets is within 5 of its own standard errors of the truth.

    With 20 % of three columns missing, the mean-field q and three draws leave a bias far below
    the standard error of this mean; a constant plugged in does not (see the second assertion).
    """
    estimates, filled = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = sample_truncated_gaussian(PRECISION, 1500, rng)
        X = mask_completely_at_random(X, 0.2, rng)
        options = {"linear": "zero", "penalty": None, "random_state": seed}
        estimates.append(TruncatedGaussianVNCE(**options).fit(X).precision_[PAIRS])
        means = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        filled.append(TruncatedGaussianVNCE(**options).fit(means).precision_[PAIRS])

    truth = PRECISION[PAIRS]
    for sample, is_unbiased in ((np.array(estimates), True), (np.array(filled), False)):
        standard_error = sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
        t = np.abs(sample.mean(axis=0) - truth) / standard_error
        assert (t < 5).all() == is_unbiased
