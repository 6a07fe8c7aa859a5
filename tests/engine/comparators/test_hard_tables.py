"""Tables on which comparators have no estimate, or nearly none: the status has to say so."""

import numpy as np
import pytest

from vnce_engine import (
    FitStatus,
    GaussianEM,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)


@pytest.fixture
def wide() -> np.ndarray:
    """Return a table with fewer rows than columns, a tenth of its cells missing."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(12, 20)))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("penalty", [None, 1.0])
def test_a_direction_without_curvature_ends_at_the_bound_of_the_diagonal(
    penalty: float | None,
) -> None:
    # Cells of weight above zero are all equal, so that K_jj and h_j say the same of them.
    X = (np.random.default_rng(0).random((200, 5)) < 0.4) * 1.0
    fitted = TruncatedGaussianScoreMatching(
        linear="free", penalty=penalty, penalty_kind="ridge", random_state=0
    ).fit(X)
    assert fitted.converged_
    held = np.diag(fitted.precision_) * X.var(axis=0)
    assert held == pytest.approx(np.full(5, 0.05))


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.01, 0.003, 0.001])
def test_an_adaptive_penalty_of_strong_dependence_is_climbed_to_its_end(apart: float) -> None:
    # Its interactions are hundreds of times and more those at which the penalty has flattened out.
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(300, 1)) + apart * rng.normal(size=(300, 4)))
    fitted = TruncatedGaussianPseudoLikelihood(penalty=1.0, random_state=0).fit(X)
    assert fitted.converged_
    free = TruncatedGaussianPseudoLikelihood(penalty=None, random_state=0).fit(X)
    # The penalty grows by ½ t² log(kappa²/t²), t = .05, per row 1000 / 300 of it for each of six
    # pairs: about .6 nats for interactions 3e4 times those of independent columns, .8 for 3e5.
    assert free.objective_path_[-1] - fitted.objective_path_[-1] < 1


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["ebic", "cv"])
def test_a_lasso_of_fewer_rows_than_columns_is_chosen(wide: np.ndarray, penalty: str) -> None:
    fitted = GaussianEM(penalty=penalty, random_state=0).fit(wide)
    assert fitted.converged_
    assert np.linalg.eigvalsh(fitted.precision_)[0] > 0


@pytest.mark.parametrize("penalty", [0.001])
def test_a_covariance_that_is_all_but_singular_ends_a_lasso_without_an_exception(
    wide: np.ndarray, penalty: float
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
