"""Subsets of a table's rows, fitted by the choices of the whole."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from vnce_engine import GaussianEM, correlation_stability
from vnce_engine.estimators.bootstrap import fit_resamples, network_of
from vnce_engine.estimators.correlation_stability import subset
from vnce_engine.inference.correlation_stability import DROPPED, correlate

PRECISION = (
    np.eye(5) * 1.25 + np.diag([-0.5, 0.4, -0.3, 0.5], 1) + np.diag([-0.5, 0.4, -0.3, 0.5], -1)
)


def table(num_rows: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    return rng.multivariate_normal(np.zeros(5), np.linalg.inv(PRECISION), num_rows)


@pytest.mark.parametrize("number", range(12))
def test_a_subset_has_its_share_of_the_rows_each_once(number: int) -> None:
    rows = subset(np.random.default_rng(number), 200, number)
    assert len(rows) == len(set(rows.tolist())) == round(200 * (1 - DROPPED[number % 10]))
    assert rows.max() < 200


def test_a_table_is_more_stable_the_more_rows_it_has() -> None:
    """Of 2,000 rows every subset has the network, of 30 few have."""
    coefficients = []
    for num_rows in (30, 2_000):
        X = table(num_rows)
        found = correlation_stability(GaussianEM(penalty=0.05).fit(X), X, n_subsets=40)
        assert found.edges.coefficient is not None
        coefficients.append(found.edges.coefficient)
        assert found.n_requested.tolist() == [4] * 10
    assert coefficients[1] == DROPPED[-1] > coefficients[0]


def test_it_is_what_numbered_fits_say_in_any_company() -> None:
    X = table(80)
    model = GaussianEM(penalty=0.05).fit(X)
    found = correlation_stability(model, X, n_subsets=20, random_state=np.random.default_rng(0))
    seed = int(np.random.default_rng(0).integers(2**63 - 1))
    parts = [
        outcome
        for first in (0, 7)
        for outcome in fit_resamples(
            model, model.choices(), X, range(first, 7 if first == 0 else 20), seed, draw=subset
        )
    ]
    same = correlate(parts, network_of(model), 5)
    np.testing.assert_array_equal(found.edges.mean, same.edges.mean)
    np.testing.assert_array_equal(found.strength.agreeing, same.strength.agreeing)


def test_too_few_subsets_and_an_estimator_that_is_not_fitted_are_refused() -> None:
    X = table(40)
    with pytest.raises(ValueError, match="`n_subsets`"):
        correlation_stability(GaussianEM().fit(X), X, n_subsets=9)
    with pytest.raises(NotFittedError):
        correlation_stability(GaussianEM(), X)
