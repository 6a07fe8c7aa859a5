"""The estimators as their users meet them: conventions, refusals, statuses, warnings."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import vnce_engine
from vnce_engine import (
    FitStatus,
    FitStep,
    GaussianVNCE,
    TruncatedGaussianNCE,
    TruncatedGaussianVNCE,
)
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

ESTIMATORS = [TruncatedGaussianVNCE, TruncatedGaussianNCE]
# Everything chosen beforehand: one short fit.
QUICK: dict[str, Any] = {"linear": "zero", "penalty": 0.5, "random_state": 0}
# Penalised so that tables of more parameters than rows are fitted, too.
CHECKED: dict[str, Any] = {"linear": "zero", "penalty": 1.0, "random_state": 0}


def table(n: int = 120, d: int = 4, fraction: float = 0.2, seed: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = sample_truncated_gaussian(ring_precision(d, rng), n, rng)
    return mask_completely_at_random(X, fraction, rng)


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
        assert edge.selected == (abs(edge.partial_correlation) >= 0.15)
        assert edge.n_pairwise == int((observed[:, i] & observed[:, j]).sum())


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


def test_without_a_seed_the_answer_is_the_same_and_with_none_another() -> None:
    options = {name: value for name, value in QUICK.items() if name != "random_state"}

    def precision(**seed: None) -> np.ndarray:
        model: np.ndarray = TruncatedGaussianVNCE(**options, **seed).fit(table()).precision_
        return model

    np.testing.assert_array_equal(precision(), precision())
    assert (precision(random_state=None) != precision()).any()


@pytest.mark.parametrize("seed", [-1, 1.5, True, "x", [1, 2]])
def test_a_seed_that_is_none_is_refused_by_its_name(seed: Any) -> None:
    with pytest.raises(ValueError, match="`random_state` must be"):
        TruncatedGaussianVNCE(**{**QUICK, "random_state": seed}).fit(table())


def spoiled(kind: str) -> pd.DataFrame:
    frame = pd.DataFrame(table(), columns=list("abcd"))
    frame["b"] = {
        "negative": frame["b"].where(frame.index != 7, -0.5),
        "infinite": frame["b"].where(frame.index != 7, np.inf),
        "constant": frame["b"].where(frame["b"].isna(), 3.0),
        "empty": np.nan,
        "huge": frame["b"] * 1e160,
        "tiny": frame["b"] * 1e-160,
    }[kind]
    return frame


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("negative", "Negative values"),
        ("infinite", "Infinite values"),
        ("constant", "Constant column"),
        ("empty", "No observed value"),
        ("huge", "Largest value beyond"),
        ("tiny", "Largest value beyond"),
    ],
)
def test_columns_that_cannot_be_used_are_named(estimator: Any, kind: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rf"{rule} .*: b$"):
        estimator(**QUICK).fit(spoiled(kind))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"linear": "yes"}, "`linear` must be one of"),
        ({"column_transform": "log"}, "`column_transform` must be one of"),
        ({"penalty": -1.0}, "`penalty` must be"),
        ({"penalty": np.inf}, "`penalty` must be"),
        ({"penalty_kind": "lasso"}, "`penalty_kind` must be one of"),
        ({"noise_ratio": 0}, "`noise_ratio` must be"),
        ({"noise_draws": "halton"}, "`noise_draws` must be one of"),
        ({"max_iter": 0}, "`max_iter` must be"),
        ({"tol": 0.0}, "`tol` must be"),
        ({"edge_threshold": -0.1}, "`edge_threshold` must be"),
        ({"preset": "fast"}, "`preset` must be one of"),
        ({"noise_scale": 1e-300}, "`noise_scale` must be a number from 0.001 to 1000, got 1e-300"),
        ({"noise_scale": 1e300}, "`noise_scale` must be a number from 0.001 to 1000"),
        ({"noise_scale": np.inf}, "`noise_scale` must be a number from 0.001 to 1000, got inf"),
        ({"selection": "aic"}, "`selection` must be one of"),
        ({"ebic_gamma": 1.5}, "`ebic_gamma` must be a number from 0 to 1"),
        ({"n_subsamples": 7}, "`n_subsamples` must be an even number"),
        ({"inclusion_threshold": 0.5}, "`inclusion_threshold` must be a number from 0.6 to 1"),
        ({"max_false_edges": -1.0}, "`max_false_edges` must be positive"),
        ({"penalties": [0.3]}, "`penalties` needs `penalty='auto'`, got 0.5"),
        ({"penalties": [], "penalty": "auto"}, "`penalties` must be None or positive numbers"),
        ({"penalties": [0.3, -1], "penalty": "auto"}, "`penalties` must be positive"),
        ({"selection": "ebic"}, "`selection='ebic'` needs `penalty_kind='l1'`"),
        (
            {"selection": "stability", "penalty_kind": "l1"},
            "`selection='stability'` needs `penalty='auto'`, got 0.5",
        ),
        (
            {
                "selection": "stability",
                "penalty_kind": "l1",
                "penalty": "auto",
                "n_subsamples": 4,
                "inclusion_threshold": 0.6,
            },
            "`inclusion_threshold=0.6` bounds no false edges with `n_subsamples=4`; take more",
        ),
        ({"preset": "paper", "penalty_kind": "l1"}, "`penalty_kind='l1'` needs `preset='default'`"),
        ({"preset": "paper", "noise_scale": 2.0}, "`noise_scale=2.0` needs `preset='default'`"),
    ],
)
def test_wrong_parameters_are_named_with_their_rule(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TruncatedGaussianVNCE(**{**QUICK, **options}).fit(table())


def test_one_column_is_refused() -> None:
    with pytest.raises(ValueError, match="minimum of 2"):
        TruncatedGaussianVNCE(**QUICK).fit(table()[:, :1])


def test_too_few_rows_are_refused() -> None:
    X = table()
    X[5:] = np.nan
    with pytest.raises(ValueError, match="at least 6 rows with an observed value, got 5"):
        TruncatedGaussianVNCE(**QUICK).fit(X)


@pytest.mark.parametrize("penalty", [None, 0.001])
def test_a_fit_with_more_parameters_than_rows_needs_a_penalty(penalty: float | None) -> None:
    # d (d + 1) / 2 + d + 1 = 15 with 4 columns.
    with pytest.raises(ValueError, match=r"`penalty` must be .* 15 parameters and 15 rows"):
        TruncatedGaussianVNCE(penalty=penalty).fit(table(n=15, fraction=0.0))
    TruncatedGaussianVNCE(penalty=None, max_iter=2).fit(table(n=60, fraction=0.0))


def test_a_grid_too_weak_for_more_parameters_than_rows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`penalties` must be at least 0\.03 with 15 parameters"):
        TruncatedGaussianVNCE(penalties=[1.0, 0.01]).fit(table(n=15, fraction=0.0))


def test_the_papers_preset_refuses_observed_zeros_by_column() -> None:
    frame = pd.DataFrame(table(), columns=list("abcd"))
    frame.loc[[2, 4], "c"] = 0.0
    with pytest.raises(ValueError, match=r"zeros in c \(2\)"):
        TruncatedGaussianVNCE(preset="paper").fit(frame)
    TruncatedGaussianVNCE(**QUICK).fit(frame)
