"""Columns very far above zero are fitted nearer to it, and lose no digits to their distance."""

from typing import Any

import numpy as np
import pytest
import torch

from vnce_engine import FitStatus, TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.data.far_columns import lowered
from vnce_engine.data.observations import Observations
from vnce_engine.simulate import mask_completely_at_random

COVARIANCE = np.full((4, 4), 0.4) + 0.6 * np.eye(4)


@pytest.fixture(scope="module")
def holes() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(np.full(4, 100.0), COVARIANCE, size=300)
    return mask_completely_at_random(X, 0.15, rng)


def fitted(X: np.ndarray, **options: Any) -> TruncatedGaussianVNCE:
    options = {"linear": "free", "penalty": 0.3, "tol": 1e-6, "random_state": 0, **options}
    return TruncatedGaussianVNCE(**options).fit(X)


@pytest.fixture(scope="module")
def near(holes: np.ndarray) -> TruncatedGaussianVNCE:
    return fitted(holes)


@pytest.mark.slow
@pytest.mark.parametrize("far", [1e4, 1e7, 1e9])
def test_the_network_is_the_same_at_any_distance(
    far: float, holes: np.ndarray, near: TruncatedGaussianVNCE
) -> None:
    model = fitted(holes + far)
    assert model.converged_
    # The table's own rounding, far * eps of a standard deviation, and how far fits are followed.
    error = 1e-4 + 10 * far * np.finfo(float).eps
    np.testing.assert_allclose(model.precision_, near.precision_, rtol=error, atol=error)
    mean, expected = (np.linalg.solve(m.precision_, m.linear_) for m in (model, near))
    np.testing.assert_allclose(mean - far, expected, atol=error + 1e-3)
    gaps = np.isnan(holes)
    imputed = model.impute(holes + far)[gaps] - far
    np.testing.assert_allclose(imputed, near.impute(holes)[gaps], atol=error + 1e-3)


def test_the_density_is_that_of_the_rows_where_they_are(
    holes: np.ndarray, near: TruncatedGaussianVNCE
) -> None:
    # log phi is a difference of terms of the order of the squared distance.
    far = 1e4
    row = holes[~np.isnan(holes).any(axis=1)][0]

    def log_phi(model: TruncatedGaussianVNCE, x: np.ndarray) -> float:
        assert model.log_partition_ is not None
        quadratic = x @ model.precision_ @ x
        return float(model.linear_ @ x - 0.5 * quadratic - model.log_partition_)

    assert log_phi(fitted(holes + far), row + far) == pytest.approx(log_phi(near, row), abs=1e-2)


def test_one_far_column_beside_others_has_its_interactions() -> None:
    rng = np.random.default_rng(1)
    X = np.abs(rng.multivariate_normal(np.array([0.0, 3.0, 3.0, 3.0]), COVARIANCE, size=400))
    apart = X + np.array([0.0, 1e8, 0.0, 0.0])
    near, far = (
        TruncatedGaussianNCE(linear="free", penalty=0.3, tol=1e-6, random_state=0).fit(table)
        for table in (X + np.array([0.0, 37.0, 0.0, 0.0]), apart)
    )
    np.testing.assert_allclose(far.precision_, near.precision_, atol=2e-3)


def test_where_the_data_are_to_decide_far_columns_have_a_linear_term(holes: np.ndarray) -> None:
    model = fitted(holes + 1e6, linear="auto", tol=1e-3)
    assert (model.linear_choice_, model.linear_evidence_) == ("free", None)
    assert model.penalty_ == 0.3


def test_ordinary_tables_are_left_alone(holes: np.ndarray) -> None:
    for table in (holes, np.abs(holes - 100)):
        observations = Observations.from_array(table)
        same, shift = lowered(observations)
        assert same is observations
        assert shift is None


def test_what_is_moved_keeps_its_gaps_its_spread_and_a_wide_berth_of_zero(
    holes: np.ndarray,
) -> None:
    table = holes + np.array([0.0, 1e6, 0.0, 1e3])
    moved, shift = lowered(Observations.from_array(table))
    assert shift is not None
    assert (shift > 0).tolist() == [False, True, False, True]
    values = moved.to_array()
    assert (np.isnan(values) == np.isnan(table)).all()
    spread = np.nanstd(table, axis=0)
    np.testing.assert_allclose(np.nanstd(values, axis=0), spread, rtol=1e-9)
    np.testing.assert_allclose((np.nanmin(values, axis=0) / spread)[[1, 3]], 40.0, rtol=1e-6)
    assert torch.equal(moved.values[:, 0], Observations.from_array(table).values[:, 0])


@pytest.mark.slow
def test_a_fit_that_cannot_move_for_want_of_digits_is_not_said_to_have_converged() -> None:
    X = 50 + 0.01 * np.abs(np.random.default_rng(0).normal(size=(300, 4)))
    model = TruncatedGaussianVNCE(linear="zero", penalty=0.1, random_state=0).fit(X)
    assert model.status_ is FitStatus.MAX_ITERATIONS
