"""The estimators as their users meet them: conventions, statuses, warnings."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import vnce_engine
from tests.engine.estimators.quick_fits import ESTIMATORS, QUICK, table
from vnce_engine import (
    FitStatus,
    FitStep,
    GaussianVNCE,
    TruncatedGaussianNCE,
    TruncatedGaussianVNCE,
)
from vnce_engine.inference.result import EdgeRule, Verdict

# Penalised so that tables of more parameters than rows are fitted, too.
CHECKED: dict[str, Any] = {"linear": "zero", "penalty": 1.0, "random_state": 0}


@pytest.mark.slow
@parametrize_with_checks([TruncatedGaussianVNCE(**CHECKED), TruncatedGaussianNCE(**CHECKED)])
def test_they_pass_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_missing_cells_are_allowed_and_tables_must_be_positive(estimator: Any) -> None:
    tags = estimator().__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.input_tags.positive_only


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_precision_is_symmetric_to_the_bit_with_a_positive_diagonal(estimator: Any) -> None:
    model = estimator(**QUICK).fit(table())
    assert (model.precision_ == model.precision_.T).all()
    assert (np.diagonal(model.precision_) > 0).all()
    assert model.n_features_in_ == 4
    assert np.isfinite(model.log_partition_)
    root = np.sqrt(np.outer(np.diagonal(model.precision_), np.diagonal(model.precision_)))
    partial = -model.precision_ / root
    np.fill_diagonal(partial, 1.0)
    np.testing.assert_allclose(model.partial_correlation_, partial, rtol=1e-12)


def test_edges_are_all_pairs_by_falling_partial_correlation() -> None:
    X = table()
    model = TruncatedGaussianVNCE(**QUICK, edge_threshold=0.15).fit(X)
    observed = ~np.isnan(X)
    assert len({(edge.source, edge.target) for edge in model.edges_}) == 6
    strengths = [abs(edge.partial_correlation) for edge in model.edges_]
    assert strengths == sorted(strengths, reverse=True)
    for edge in model.edges_:
        i, j = edge.source, edge.target
        assert edge.precision == model.precision_[i, j]
        assert edge.selected == (edge.verdict is Verdict.PRESENT)
        assert edge.n_pairwise == int((observed[:, i] & observed[:, j]).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, EdgeRule.FALSE_DISCOVERY_RATE),
        ({"penalty": 0.1, "penalty_kind": "l1"}, EdgeRule.FALSE_DISCOVERY_RATE),
        ({"penalty_kind": "l1", "selection": "ebic"}, EdgeRule.THRESHOLD),
        ({"max_iter": 1}, EdgeRule.THRESHOLD),  # has not converged
    ],
)
def test_pairs_are_selected_by_a_test_unless_there_is_none_or_the_penalty_chose_a_graph(
    options: dict[str, Any], rule: EdgeRule
) -> None:
    chosen = {"linear": "zero", "penalty": "auto"} | options
    model = TruncatedGaussianVNCE(**chosen, random_state=0).fit(table(n=1_000))
    assert model.edge_rule_ is rule
    selected = {edge.selected for edge in model.edges_}
    assert selected == {True, False}
    for edge in model.edges_:
        is_large = edge.precision != 0 and abs(edge.partial_correlation) >= 0.1
        is_tested = rule is EdgeRule.FALSE_DISCOVERY_RATE
        assert edge.selected == (edge.q_value <= model.fdr if is_tested else is_large)


@pytest.mark.slow
def test_one_seed_gives_one_answer_and_another_seed_another() -> None:
    X = table()
    options = {"linear": "zero", "penalty": 0.5}
    first, again = (TruncatedGaussianVNCE(**options, random_state=4).fit(X) for _ in range(2))
    other = TruncatedGaussianVNCE(**options, random_state=5).fit(X)
    np.testing.assert_allclose(again.precision_, first.precision_, rtol=0, atol=1e-8)
    assert not np.allclose(other.precision_, first.precision_, rtol=0, atol=1e-8)


def test_plain_random_noise_is_an_option() -> None:
    X = table()
    sobol = TruncatedGaussianVNCE(**QUICK).fit(X)
    random = TruncatedGaussianVNCE(**QUICK, noise_draws="random").fit(X)
    assert random.converged_
    assert not np.array_equal(random.precision_, sobol.precision_)


def test_a_fitted_estimator_survives_pickling() -> None:
    X = table()
    model = TruncatedGaussianVNCE(**QUICK).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.impute(X), model.impute(X))


def test_a_data_frame_s_names_are_kept() -> None:
    frame = pd.DataFrame(table(), columns=["Ca", "Mg", "pH", "NO₃"])
    model = TruncatedGaussianVNCE(**QUICK).fit(frame)
    assert list(model.feature_names_in_) == ["Ca", "Mg", "pH", "NO₃"]
    with pytest.raises(ValueError, match="feature names"):
        model.impute(frame[["Mg", "Ca", "pH", "NO₃"]])


# --- imputation ---


@pytest.mark.slow
@pytest.mark.parametrize("transform", ["none", "sqrt", "cbrt", "log1p"])
def test_imputing_fills_every_hole_and_leaves_the_rest_to_the_bit(transform: str) -> None:
    X = table()
    X[3] = np.nan
    model = TruncatedGaussianVNCE(**QUICK, column_transform=transform).fit(X)
    filled = model.impute(X)
    observed = ~np.isnan(X)
    assert (filled[observed] == X[observed]).all()
    assert np.isfinite(filled).all()
    assert (filled >= 0).all()


def test_rows_with_nothing_observed_are_left_out_counted_and_imputed() -> None:
    X = table()
    with_empty = np.insert(X, [0, 60], np.nan, axis=0)
    model = TruncatedGaussianVNCE(**QUICK).fit(X)
    other = TruncatedGaussianVNCE(**QUICK).fit(with_empty)
    np.testing.assert_array_equal(other.precision_, model.precision_)
    assert other.diagnostics_.num_empty_rows == model.diagnostics_.num_empty_rows + 2
    assert np.isfinite(other.impute(with_empty)).all()


@pytest.mark.slow
def test_nce_drops_fills_or_draws_what_is_missing() -> None:
    X = table(fraction=0.15)
    complete = X[~np.isnan(X).any(axis=1)]
    mean_filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    zero_filled = np.where(np.isnan(X), 0.0, X)
    for imputation, same_as in (("drop", complete), ("mean", mean_filled), ("zero", zero_filled)):
        model = TruncatedGaussianNCE(imputation=imputation, **QUICK).fit(X)
        expected = TruncatedGaussianNCE(**QUICK).fit(same_as)
        np.testing.assert_allclose(model.precision_, expected.precision_, rtol=1e-10)
        assert any(warning.code == "missing-cells-not-modelled" for warning in model.warnings_)
    noise_filled = TruncatedGaussianNCE(imputation="noise", **QUICK).fit(X)
    assert np.isfinite(noise_filled.precision_).all()


@pytest.mark.slow
@pytest.mark.parametrize("imputation", ["mean", "zero", "noise", "drop"])
def test_nce_fills_no_row_with_nothing_observed(imputation: Any) -> None:
    X = table()
    with_empty = np.insert(X, [0, 60], np.nan, axis=0)
    model, other = (
        TruncatedGaussianNCE(imputation=imputation, **QUICK).fit(rows) for rows in (X, with_empty)
    )
    np.testing.assert_array_equal(other.precision_, model.precision_)
    assert other.diagnostics_.num_rows == model.diagnostics_.num_rows + 2
    assert other.diagnostics_.num_missing == model.diagnostics_.num_missing + 2 * X.shape[1]


def test_cells_of_rows_with_nothing_observed_are_not_told_to_be_filled() -> None:
    rows = np.insert(table(fraction=0.0), [0, 60], np.nan, axis=0)
    warned = {warning.code for warning in TruncatedGaussianNCE(**QUICK).fit(rows).warnings_}
    assert "missing-cells-not-modelled" not in warned


# --- how a fit ends ---


@pytest.mark.slow
def test_progress_is_reported_and_never_falls() -> None:
    steps: list[FitStep] = []
    TruncatedGaussianVNCE(random_state=0).fit(table(), on_step=steps.append)
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < 0.1
    assert fractions[-1] == 1.0
    stages = ["linear term", "penalty", "fit", "uncertainty"]
    assert list(dict.fromkeys(step.stage for step in steps)) == stages


@pytest.mark.slow
def test_positions_from_which_noise_is_new_are_those_where_the_objective_changes_level() -> None:
    model = TruncatedGaussianVNCE(random_state=0).fit(table())
    path, starts = np.array(model.objective_path_), model.noise_starts_
    assert 0 < min(starts) <= max(starts) < model.n_iter_
    steps = np.abs(np.diff(path))
    across = np.array(starts) - 1
    assert steps[across].min() > 10 * np.delete(steps, across).max()


@pytest.mark.slow
@pytest.mark.parametrize("num_reports", [1, 5, 30])
def test_a_cancelled_fit_says_so_and_keeps_its_last_estimate(num_reports: int) -> None:
    reports = 0

    def stop(step: FitStep) -> bool:
        nonlocal reports
        reports += 1
        return reports >= num_reports

    model = TruncatedGaussianVNCE(random_state=0).fit(table(), on_step=stop)
    assert reports == num_reports
    assert model.status_ is FitStatus.CANCELLED
    assert not model.converged_
    assert "cancelled" in model.message_
    assert np.isfinite(model.precision_).all()


def test_a_fit_that_stops_early_does_not_look_finished() -> None:
    model = TruncatedGaussianVNCE(**QUICK, max_iter=1).fit(table())
    assert model.status_ is FitStatus.MAX_ITERATIONS
    assert not model.converged_
    assert model.n_iter_ == 1
    assert "max_iter" in model.message_


def test_missing_cells_carry_their_assumption_into_the_result() -> None:
    codes = [warning.code for warning in TruncatedGaussianVNCE(**QUICK).fit(table()).warnings_]
    assert "missing-completely-at-random" in codes
    complete = TruncatedGaussianVNCE(**QUICK).fit(table(fraction=0.0))
    assert not complete.warnings_


@pytest.mark.slow
def test_odd_columns_are_warned_of_by_name() -> None:
    X = table()
    X[:60, 0] = np.nan
    X[60:, 1] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd")).assign(copy_of_c=X[:, 2], rare=0.0)
    frame.loc[[3, 9], "rare"] = 1.0
    model = TruncatedGaussianVNCE(**QUICK).fit(frame)
    messages = {warning.code: warning.message for warning in model.warnings_}
    assert "a and b" in messages["pair-never-observed"]
    assert "c and copy_of_c" in messages["duplicate-columns"]
    assert "rare" in messages["nearly-constant-column"]
    columns = {warning.code: warning.columns for warning in model.warnings_}
    assert columns["pair-never-observed"] == ("a", "b")
    assert columns["duplicate-columns"] == ("c", "copy_of_c")
    assert columns["nearly-constant-column"] == ("rare",)
    assert columns["missing-completely-at-random"] == ()


@pytest.mark.slow
def test_a_column_with_heavier_tails_than_the_family_s_is_warned_of_until_it_is_transformed() -> (
    None
):
    frame = pd.DataFrame(table(), columns=list("abcd"))
    frame["b"] = np.exp(1.2 * np.random.default_rng(8).standard_normal(len(frame)))

    def warned(transform: str) -> tuple[str, ...]:
        warnings = TruncatedGaussianVNCE(**QUICK, column_transform=transform).fit(frame).warnings_
        return next((w.columns for w in warnings if w.code == "heavy-tailed-column"), ())

    assert warned("none") == ("b",)
    assert warned("log1p") == ()


def test_a_column_far_above_zero_is_warned_of_where_the_model_ends_at_zero() -> None:
    frame = pd.DataFrame(table(), columns=list("abcd"))
    frame["b"] += 40 * frame["b"].std()
    model = TruncatedGaussianVNCE(**QUICK).fit(frame)
    (warning,) = [w for w in model.warnings_ if w.code == "far-from-zero-column"]
    assert warning.columns == ("b",)
    unbounded = GaussianVNCE(penalty=0.5, random_state=0).fit(frame)
    assert "far-from-zero-column" not in [w.code for w in unbounded.warnings_]


# --- what is refused ---


ALL_ESTIMATORS = [
    estimator
    for name in vnce_engine.__all__
    if hasattr(estimator := getattr(vnce_engine, name), "fit")
]


@pytest.mark.parametrize("estimator", ALL_ESTIMATORS)
def test_the_seed_is_0_unless_it_is_given(estimator: Any) -> None:
    assert estimator().get_params()["random_state"] == 0


@pytest.mark.slow
def test_without_a_seed_the_answer_is_the_same_and_with_none_another() -> None:
    options = {name: value for name, value in QUICK.items() if name != "random_state"}

    def precision(**seed: None) -> np.ndarray:
        model: np.ndarray = TruncatedGaussianVNCE(**options, **seed).fit(table()).precision_
        return model

    np.testing.assert_array_equal(precision(), precision())
    assert (precision(random_state=None) != precision()).any()
