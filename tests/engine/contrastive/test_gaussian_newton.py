"""Penalties of the plain Gaussian: identities, conditions of the optimum, likelihood, choices."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.contrastive.gaussian_newton import GaussianCycles
from vnce_engine.contrastive.gaussian_problem import GaussianProblem
from vnce_engine.contrastive.gaussian_sample import log_density
from vnce_engine.contrastive.objective import vnce_objective
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.gaussian import Gaussian
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.estimators.gaussian import GaussianNCE, GaussianVNCE
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus

FloatArray = NDArray[np.float64]

QUIET = Progress(None)
NUM_COLUMNS = 5
OFF_DIAGONAL = ~np.eye(NUM_COLUMNS, dtype=bool)
# Neighbours of a chain have a partial correlation of .45.
CHAIN = np.eye(NUM_COLUMNS) - 0.45 * (np.eye(NUM_COLUMNS, k=1) + np.eye(NUM_COLUMNS, k=-1))


def chain_table(n: int = 300, fraction: float = 0.0, seed: int = 41) -> FloatArray:
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal(np.zeros(NUM_COLUMNS), np.linalg.inv(CHAIN), size=n)
    X[rng.random(X.shape) < fraction] = np.nan
    return X[~np.isnan(X).all(axis=1)]


def prepared(fraction: float) -> GaussianProblem:
    observations = Observations.from_array(chain_table(fraction=fraction))
    generator = torch.Generator().manual_seed(0)
    return GaussianProblem.prepare(observations, 5, "sobol", generator)


def climbed(
    problem: GaussianProblem, fit: GaussianCycles, strength: float, kind: PenaltyKind
) -> Penalty:
    """Take a fit to the optimum under a penalty, which is returned."""
    penalty = problem.penalty(strength, kind, problem.num_rows, has_linear=True)
    status = fit.run(problem.sample, penalty, problem.constraints(has_linear=True), 1e-7, 100)
    assert status is FitStatus.CONVERGED
    return penalty


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_every_penalty_of_next_to_no_strength_leaves_what_no_penalty_does(fraction: float) -> None:
    # The diagonal's part is switched on by any strength at all; so many rows make it nothing too.
    problem = prepared(fraction)
    starts = {kind: GaussianCycles(problem.start(has_linear=True), QUIET) for kind in PenaltyKind}
    for kind, fit in starts.items():
        weak = Penalty(1e-9, kind, problem.inverse_k0(has_linear=True), num_rows=10**12)
        constraints = problem.constraints(has_linear=True)
        assert fit.run(problem.sample, weak, constraints, 1e-7, 100) is FitStatus.CONVERGED
    none = GaussianCycles(problem.start(has_linear=True), QUIET)
    climbed(problem, none, 0.0, PenaltyKind.RIDGE)
    for fit in starts.values():
        torch.testing.assert_close(fit.augmented, none.augmented, rtol=0, atol=1e-6)


@pytest.mark.parametrize("fraction", [0.0, 0.3])
@pytest.mark.parametrize("strength", [0.01, 0.05])
def test_zeros_are_where_the_slope_is_within_the_l1_penalty_s_and_nowhere_else(
    fraction: float, strength: float
) -> None:
    problem = prepared(fraction)
    fit = GaussianCycles(problem.start(has_linear=True), QUIET)
    penalty = climbed(problem, fit, strength, PenaltyKind.L1)
    # The slope of the objective itself, by automatic differentiation.
    leaf = fit.augmented.clone().requires_grad_(True)
    sample = problem.sample
    log_ratio = log_density(leaf, sample.values, sample.pattern, sample.patterns)
    log_ratio = log_ratio - sample.log_noise
    data, noise = log_ratio[:, 0].unsqueeze(0), log_ratio[:, 1:].reshape(1, -1)
    (slope,) = torch.autograd.grad(vnce_objective(data, noise, sample.nu).total, leaf)
    slope = 0.5 * (slope + slope.mT)[:-1, :-1]
    K = fit.augmented[:-1, :-1]
    threshold = 0.5 * strength * 1000 / penalty.num_rows
    off_diagonal = torch.from_numpy(OFF_DIAGONAL)
    at_zero, moved = (K == 0) & off_diagonal, (K != 0) & off_diagonal
    assert at_zero.any()
    assert moved.any()
    assert (slope[at_zero].abs() <= threshold).all()
    # The last step was below 1e-7 of a diagonal of order 1, and so is the gradient left.
    torch.testing.assert_close(slope[moved], threshold * K[moved].sign(), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PenaltyKind.L1, PenaltyKind.RIDGE])
@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_a_path_ends_where_a_fit_from_scratch_does(fraction: float, kind: PenaltyKind) -> None:
    problem = prepared(fraction)
    warm = GaussianCycles(problem.start(has_linear=True), QUIET)
    for strength in (0.2, 0.1, 0.05, 0.02):
        climbed(problem, warm, strength, kind)
        cold = GaussianCycles(problem.start(has_linear=True), QUIET)
        climbed(problem, cold, strength, kind)
        torch.testing.assert_close(warm.augmented, cold.augmented, rtol=0, atol=1e-6)
        assert torch.equal(warm.augmented == 0, cold.augmented == 0)


def ridge_likelihood(X: FloatArray, penalty: Penalty, factor: float) -> tuple[Tensor, Tensor]:
    """Return K's and h's maximum of the mean log likelihood less `factor` times the penalty.

    And the standard errors over 1 / sqrt(n) of an estimate whose slope has the information for its
    variance: the roots of the diagonal of H⁻¹ I H⁻¹, H = I + factor * (penalty)''.
    """
    x, d = torch.from_numpy(X), X.shape[1]

    def log_likelihood(free: Tensor) -> Tensor:
        given = QuadraticModel.unpack(torch.cat([free, free.new_zeros(1)]), d)
        mean = torch.linalg.solve(given.precision, given.linear)
        c = QuadraticModel.normal(mean, given.precision).log_partition
        return Gaussian(d).log_marginal(torch.cat([free, c.reshape(1)]), x).mean()

    def loss(free: Tensor) -> Tensor:
        K = QuadraticModel.unpack(torch.cat([free, free.new_zeros(1)]), d).precision
        return factor * penalty.value(K) - log_likelihood(free)

    start = QuadraticModel.normal(torch.zeros(d).double(), torch.eye(d).double())
    free = start.packed()[:-1]
    for _ in range(50):
        hessian = torch.autograd.functional.hessian(loss, free)
        step = torch.linalg.solve(hessian, _gradient(loss, free))
        free = free - step * min(1.0, 0.3 / float(step.abs().max()))
        if float(step.abs().max()) < 1e-8:
            break
    assert float(step.abs().max()) < 1e-8
    information = -torch.autograd.functional.hessian(log_likelihood, free)
    inverse = torch.linalg.inv(torch.autograd.functional.hessian(loss, free))
    return free, (inverse @ information @ inverse).diagonal().sqrt()


def _gradient(loss: Any, free: Tensor) -> Tensor:
    leaf = free.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(leaf), leaf)
    return gradient


@pytest.mark.slow
@pytest.mark.parametrize(("fraction", "nu"), [(0.0, 5), (0.0, 50), (0.3, 20)])
def test_under_a_ridge_it_is_penalised_likelihood_up_to_the_error_of_the_noise(
    fraction: float, nu: int
) -> None:
    # Where noise is the fitted Gaussian every class probability is nu / (1 + nu), and slope and
    # curvature of J are nu / (1 + nu) times those of the mean log likelihood, but that the mean
    # slope of nu n noise rows stands for its expectation. So the penalty counts (1 + nu) / nu, and
    # the estimate's standard error is that of a slope with variance I / (nu n).
    rng = np.random.default_rng(3)
    covariance = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]])
    X = rng.multivariate_normal(np.zeros(3), covariance, size=500)
    X[rng.random(X.shape) < fraction] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    strength = 0.2
    penalty = Penalty(strength, PenaltyKind.RIDGE, torch.ones(3).double(), len(X))
    expected, errors = ridge_likelihood(X, penalty, (1 + nu) / nu)
    fitted = GaussianVNCE(
        penalty=strength,
        penalty_kind="ridge",
        noise_ratio=nu,
        noise_draws="random",
        random_state=0,
    ).fit(X)
    assert fitted.converged_
    K, h = torch.from_numpy(fitted.precision_), torch.from_numpy(fitted.linear_)
    found = QuadraticModel(K, h, torch.zeros(())).packed()[:-1]
    score = (found - expected) / (errors / np.sqrt(nu * len(X)))
    assert (score.abs() < 5).all(), score
    # The ridge matters here: without it likelihood is elsewhere.
    free, _ = ridge_likelihood(X, penalty, 0.0)
    assert ((free - expected).abs() / (errors / np.sqrt(nu * len(X)))).max() > 10


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [GaussianVNCE, GaussianNCE])
def test_auto_takes_a_strength_near_the_best_of_an_adaptive_penalty(estimator: Any) -> None:
    model = estimator(random_state=0, tol=3e-3).fit(chain_table(fraction=0.2))
    path = [step for step in model.penalty_path_ if step.kind == "adaptive"]
    best = max(path, key=lambda step: step.criterion)
    (chosen,) = [step for step in path if step.chosen]
    assert best.criterion - chosen.criterion <= 1.5 * chosen.standard_error
    assert (model.selection_, model.penalty_kind_) == ("held-out", "adaptive")


@pytest.mark.slow
def test_independent_columns_take_a_strong_adaptive_penalty_and_have_no_edge() -> None:
    X = np.random.default_rng(5).normal(size=(300, 5))
    model = GaussianVNCE(random_state=0).fit(X)
    assert model.penalty_kind_ == "adaptive"
    assert not any(edge.selected for edge in model.edges_)


def test_a_choice_at_the_weak_end_of_ones_own_grid_is_a_warning_too() -> None:
    model = GaussianVNCE(penalty_kind="ridge", penalties=[300.0, 100.0, 30.0], random_state=0).fit(
        chain_table(1000)
    )
    assert model.penalty_ == 30.0
    (warning,) = [w for w in model.warnings_ if w.code == "penalty-at-grid-end"]
    assert "let `penalties` go on to 3." in warning.message


@pytest.mark.slow
def test_a_choice_by_held_out_rows_is_the_seed_s() -> None:
    X = chain_table(fraction=0.2)
    first, again, other = (
        GaussianVNCE(penalty_kind="l1", penalties=[0.1, 0.03], random_state=seed).fit(X)
        for seed in (1, 1, 2)
    )
    assert first.penalty_path_ == again.penalty_path_
    np.testing.assert_array_equal(first.precision_, again.precision_)
    assert first.penalty_path_ != other.penalty_path_


@pytest.mark.slow
@pytest.mark.parametrize(
    "choices",
    [{"selection": "ebic"}, {"selection": "stability", "n_subsamples": 20}],
    ids=lambda choices: choices["selection"],
)
def test_a_chain_is_found_and_fitted_without_a_penalty(choices: dict[str, Any]) -> None:
    # True partial correlations are .45 / 1, nine standard errors of 400 rows from zero, and those
    # of absent pairs would need three of them (eBIC), or to be found in most half-samples.
    X = chain_table(400, fraction=0.1)
    model = GaussianVNCE(penalty_kind="l1", random_state=0, tol=1e-4, **choices).fit(X)
    np.testing.assert_array_equal(model.precision_ != 0, CHAIN != 0)
    # An edge's estimate is not shrunk: five standard errors of maximum likelihood, of nine tenths
    # of the cells, on the scale of partial correlations.
    edges = [(i, i + 1) for i in range(NUM_COLUMNS - 1)]
    found = np.array([model.partial_correlation_[edge] for edge in edges])
    error = (1 - 0.45**2) / np.sqrt(0.81 * len(X))
    assert (np.abs(found - 0.45) < 5 * error).all()
    assert (model.stability_ is not None) == (choices["selection"] == "stability")
