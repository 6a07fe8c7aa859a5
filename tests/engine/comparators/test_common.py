"""What all comparators of the truncated Gaussian share."""

import numpy as np
import pytest

from vnce_engine import (
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.runtime.reports import FitStatus

pytestmark = pytest.mark.slow

QUICK = {
    "natural likelihood": lambda: TruncatedGaussianMLE(random_state=7),
    "stochastic likelihood": lambda: TruncatedGaussianMLE(
        method="stochastic", n_draws=1, burn_in=2, thinning=1, max_iter=5, random_state=7
    ),
    "contrastive divergence": lambda: TruncatedGaussianCD(
        persistent=False, max_iter=10, random_state=7
    ),
    "persistent": lambda: TruncatedGaussianCD(max_iter=10, random_state=7),
    "pseudo-likelihood": lambda: TruncatedGaussianPseudoLikelihood(max_iter=30, random_state=7),
    "score matching": lambda: TruncatedGaussianScoreMatching(random_state=7),
}


@pytest.fixture(scope="module", params=list(QUICK))
def make(request):
    return QUICK[request.param]


@pytest.fixture(scope="module")
def few(table_with_holes):
    return table_with_holes[:300]


@pytest.fixture(scope="module")
def fractions():
    """Return what the fit of the moment has reported of its progress."""
    return []


@pytest.fixture(scope="module")
def fitted(make, few, fractions):
    fractions.clear()
    return make().fit(few, on_step=lambda step: fractions.append(step.fraction))


def test_the_same_seed_gives_the_same_symmetric_k(make, fitted, few):
    again = make().fit(few)

    assert (again.precision_ == fitted.precision_).all()
    assert (fitted.precision_ == fitted.precision_.T).all()
    assert (np.diag(fitted.precision_) > 0).all()


def test_a_path_of_gradients_says_that_it_is_none_of_an_objective(fitted):
    has_no_objective = isinstance(fitted, TruncatedGaussianMLE | TruncatedGaussianCD)
    assert ("squared gradient" in fitted.objective_name_) == has_no_objective
    assert min(fitted.objective_path_) >= 0 or not has_no_objective


def test_units_do_not_matter(make, fitted, few):
    units = np.array([1e-4, 8.0, 1e3])
    scaled = make().fit(few * units)

    back = scaled.precision_ * np.outer(units, units)
    # Rounding differs, and chains that differ by it part ways in no draw but at a step's halving.
    assert back == pytest.approx(fitted.precision_, rel=1e-3, abs=1e-3)


def test_a_fit_can_be_cancelled(make, few):
    model = make().fit(few, on_step=lambda step: step.iteration >= 2)

    assert model.status_ is FitStatus.CANCELLED
    assert "cancelled" in model.message_
    assert np.isfinite(model.precision_).all()


def test_fractions_rise_to_at_most_one(fitted, fractions):
    assert fractions
    assert (np.diff(fractions) >= 0).all()
    assert fractions[-1] <= 1


def test_imputation_fills_missing_cells_only(fitted, few):
    filled = fitted.impute(few)

    observed = ~np.isnan(few)
    assert (filled[observed] == few[observed]).all()
    assert (filled[~observed] > 0).all()


@pytest.mark.parametrize("persistent", [True, False])
def test_contrastive_divergence_finds_the_pairs(persistent, table_with_holes, true_precision):
    model = TruncatedGaussianCD(persistent=persistent, max_iter=20, random_state=0).fit(
        table_with_holes
    )

    # Complete pairs, 0.64 of 4000 rows, give an interaction of columns at mean square 1 a standard
    # error of about 1 / sqrt(n) / E(xy)-spread < 0.05; CD's own bias is of second order in it.
    difference = np.abs(model.precision_ - true_precision)
    assert (difference < 5 * 0.05 * np.sqrt(np.outer(*[np.diag(true_precision)] * 2))).all()


@pytest.mark.parametrize(
    "estimator", [TruncatedGaussianPseudoLikelihood, TruncatedGaussianScoreMatching]
)
def test_imputed_tables_give_the_truth_and_filled_ones_do_not(
    estimator, table_with_holes, true_precision
):
    imputed = estimator(random_state=0).fit(table_with_holes)
    zero = estimator(imputation="zero", random_state=0).fit(table_with_holes)

    # As above, with half as much again for estimators that are less efficient than likelihood.
    allowed = 5 * 0.075 * np.sqrt(np.outer(*[np.diag(true_precision)] * 2))
    assert (np.abs(imputed.precision_ - true_precision) < allowed).all()
    assert (
        np.abs(zero.precision_ - true_precision).max()
        > np.abs(imputed.precision_ - true_precision).max()
    )
    assert imputed.converged_
    assert imputed.column_change_.shape == (3,)
    assert "missing-cells-not-modelled" in [warning.code for warning in zero.warnings_]


@pytest.mark.parametrize(
    "estimator", [TruncatedGaussianPseudoLikelihood, TruncatedGaussianScoreMatching]
)
def test_imputations_that_never_settle_are_reported_and_do_not_explode(
    estimator, nearly_functional_table
):
    # No finite number of rounds brings a random mean to rest at 1e-9.
    model = estimator(max_iter=21, tol=1e-9, random_state=0).fit(nearly_functional_table)

    assert model.status_ is FitStatus.MAX_ITERATIONS
    assert "column_change_" in model.message_
    assert model.column_change_.shape == (4,)
    assert np.isfinite(model.column_change_).all()
    filled = model.impute(nearly_functional_table)
    assert (filled <= 3 * np.nanmax(nearly_functional_table, axis=0)).all()


def test_too_few_complete_rows_are_refused(table_with_holes):
    few = table_with_holes[np.isnan(table_with_holes).any(axis=1)][:50]
    with pytest.raises(
        ValueError, match="`imputation='drop'` needs at least 6 complete rows, got 0"
    ):
        TruncatedGaussianScoreMatching(imputation="drop").fit(few)
