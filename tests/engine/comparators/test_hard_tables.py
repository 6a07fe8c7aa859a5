"""Tables on which comparators have no estimate, or nearly none: the status has to say so."""

import numpy as np
import pytest

from vnce_engine import (
    FitStatus,
    GaussianEM,
    TruncatedGaussianScoreMatching,
)


@pytest.fixture
def wide() -> np.ndarray:
    """Return a table with fewer rows than columns, a tenth of its cells missing."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(12, 20)))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_an_objective_without_a_minimum_is_no_convergence(wide: np.ndarray) -> None:
    fitted = TruncatedGaussianScoreMatching(random_state=0).fit(wide)
    assert fitted.status_ is FitStatus.MAX_ITERATIONS
    held = TruncatedGaussianScoreMatching(random_state=0, penalty=1.0, imputation="mean").fit(wide)
    assert held.converged_


@pytest.mark.parametrize("penalty", ["ebic", "cv", 0.001])
def test_a_covariance_that_is_all_but_singular_ends_a_lasso_without_an_exception(
    wide: np.ndarray, penalty: float | str
) -> None:
    fitted = GaussianEM(penalty=penalty).fit(wide)
    assert not fitted.converged_
    assert np.isfinite(fitted.precision_).all()


@pytest.mark.parametrize("penalty", ["ebic", "cv"])
def test_equal_columns_choose_no_penalty(penalty: str) -> None:
    X = np.random.default_rng(1).normal(size=(60, 4))
    X[:, 3] = X[:, 0]
    fitted = GaussianEM(penalty=penalty).fit(X)
    assert (fitted.status_, fitted.penalty_) == (FitStatus.NON_FINITE, None)
