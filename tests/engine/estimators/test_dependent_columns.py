"""Columns that nearly depend on each other: a fit that says it has converged is at its maximum."""

import numpy as np
import pytest

from vnce_engine import FitStatus, TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.simulate import mask_completely_at_random


@pytest.mark.slow
@pytest.mark.parametrize(
    "penalty", [{"penalty": 1.0, "penalty_kind": "centred-ridge"}, {"penalty": 0.1}]
)
def test_a_default_fit_of_nearly_dependent_columns_ends_where_a_far_stricter_one_does(
    penalty: dict[str, object],
) -> None:
    rng = np.random.default_rng(3)
    common = np.abs(rng.normal(size=(300, 1))) + 1
    X = np.abs(common * np.array([1, 2, 0.5, 1]) + 0.05 * rng.normal(size=(300, 4)))
    settled, at_maximum = (
        TruncatedGaussianNCE(linear="zero", random_state=0, tol=tol, max_iter=300, **penalty).fit(X)
        for tol in (3e-3, 1e-6)
    )
    assert settled.status_ is FitStatus.CONVERGED
    # New noise moves each of 11 parameters by about a tenth of its standard error.
    left = 300 * (at_maximum.objective_path_[-1] - settled.objective_path_[-1])
    assert left < 0.5 * 11 * 0.1**2


@pytest.mark.slow
def test_a_pair_that_never_occurs_together_ends_where_the_barrier_holds_it() -> None:
    rng = np.random.default_rng([0, 6])
    X = (rng.random((300, 5)) < np.array([0.5, 0.1, 0.9, 0.3, 0.02])).astype(float)
    assert not (X[:, 3] * X[:, 4]).any()  # without the barrier K_34 grows for ever
    settled, at_maximum = (
        TruncatedGaussianNCE(linear="zero", penalty=None, random_state=0, tol=tol, max_iter=300)
        for tol in (3e-3, 1e-6)
    )
    for model in (settled, at_maximum):
        model.fit(X)
        assert model.status_ is FitStatus.CONVERGED
        assert np.linalg.eigvalsh(model.precision_)[0] > 0
    left = 300 * (at_maximum.objective_path_[-1] - settled.objective_path_[-1])
    # Sixteen parameters, as above.
    assert left < 0.5 * 16 * 0.1**2
    assert at_maximum.partial_correlation_[3, 4] < -0.8


@pytest.mark.slow
def test_a_long_chain_of_strongly_dependent_columns_settles_and_is_found() -> None:
    """Noise of independent columns is told from such rows for certain, and no fit to it settled."""
    rng = np.random.default_rng([1, 30])
    place = np.arange(24)
    covariance = 0.85 ** np.abs(np.subtract.outer(place, place))
    X = rng.multivariate_normal(np.full(24, 8.0), covariance, size=300)
    model = TruncatedGaussianVNCE(linear="free", random_state=0).fit(
        mask_completely_at_random(X, 0.2, rng)
    )
    assert model.status_ is FitStatus.CONVERGED
    found = {(edge.source, edge.target) for edge in model.edges_ if edge.selected}
    chain = {(i, i + 1) for i in range(23)}
    assert len(found & chain) >= 21
    # A tenth of those found may be false, and chance is in that: 2.5 of 25.
    assert len(found - chain) <= 6


@pytest.mark.slow
def test_strongly_dependent_columns_have_one_answer_whatever_the_seed() -> None:
    rng = np.random.default_rng([2, 30])
    covariance = 0.9 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    X = rng.multivariate_normal(np.full(6, 8.0), covariance, size=200)
    answers = [
        TruncatedGaussianVNCE(linear="free", random_state=seed).fit(X).partial_correlation_
        for seed in range(3)
    ]
    spread = np.std(answers, axis=0, ddof=1)[np.triu_indices(6, 1)]
    # In sampling standard errors of a partial correlation of zero.
    assert np.median(spread) < 0.1 / np.sqrt(200)
    assert spread.max() < 0.5 / np.sqrt(200)
