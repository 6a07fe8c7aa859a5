"""Resamples of a table: what is held, what is drawn anew, and what does not come to a network."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from tests.engine.saves import fit_and_saves
from vnce_engine import GaussianEM, TruncatedGaussianVNCE, bootstrap
from vnce_engine.estimators.bootstrap import fit_resamples
from vnce_engine.inference.resamples import Failure, Network
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.progress import FitCancelledError
from vnce_engine.runtime.reports import FitStep
from vnce_engine.simulate import (
    mask_completely_at_random,
    random_precision,
    sample_truncated_gaussian,
)

FloatArray = NDArray[np.float64]


def table(num_rows: int, num_columns: int, fraction: float = 0.2) -> FloatArray:
    rng = np.random.default_rng(4)
    precision = random_precision(num_columns, rng, density=0.5)
    X = sample_truncated_gaussian(precision, num_rows, rng)
    return mask_completely_at_random(X, fraction, rng)


@pytest.fixture(scope="module", name="X")
def _table() -> FloatArray:
    return table(120, 4)


@pytest.fixture(scope="module")
def fitted(X: FloatArray) -> TruncatedGaussianVNCE:
    return TruncatedGaussianVNCE(linear="zero").fit(X)


def outcomes_of(fitted: Any, X: FloatArray, numbers: Any, **options: Any) -> list[Any]:
    return fit_resamples(fitted, fitted.choices(), X, numbers, 5, **options)


def assert_same(some: list[Any], others: list[Any]) -> None:
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        for name in ("partial_correlation", "debiased", "selected"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_what_the_fit_has_chosen_is_held(fitted: TruncatedGaussianVNCE) -> None:
    choices = fitted.choices()
    assert fitted.penalty == fitted.penalty_kind == "auto"
    held = fitted.with_choices(choices)
    options = held._options()
    assert (options.linear, options.penalty) == ("zero", fitted.penalty_)
    assert options.penalty_kind is PenaltyKind(str(fitted.penalty_kind_))
    assert options.relaxation == fitted.penalty_relaxation_
    assert fitted._options().relaxation is None


@pytest.mark.slow
def test_the_relaxation_that_is_held_is_the_fits(X: FloatArray) -> None:
    estimator = TruncatedGaussianVNCE(linear="zero", penalty=1.0, penalty_kind="adaptive")
    assert estimator.fit(X).penalty_relaxation_ == 1.0  # wholly, with a strength of one's own
    choices = estimator.choices()
    for relaxation in (0.0, 0.25):
        held = estimator.with_choices(type(choices)(**{**vars(choices), "relaxation": relaxation}))
        assert held.fit(X).penalty_relaxation_ == relaxation


@pytest.mark.slow
def test_a_graph_of_ebic_is_chosen_again_at_the_strength_that_was_taken(X: FloatArray) -> None:
    estimator = TruncatedGaussianVNCE(linear="zero", penalty_kind="l1", selection="ebic").fit(X)
    [chosen] = [step.strength for step in estimator.penalty_path_ if step.chosen]
    held = estimator.with_choices(estimator.choices())
    assert (held.penalty, held.penalties) == ("auto", (chosen,))


def test_a_rule_of_a_comparator_gives_way_to_the_strength_that_it_chose() -> None:
    estimator = GaussianEM(penalty="ebic").fit(table(120, 4))
    held = estimator.with_choices(estimator.choices())
    assert held.penalty == estimator.penalty_ is not None
    plain = GaussianEM().fit(table(120, 4))
    assert plain.with_choices(plain.choices()).penalty is None


@pytest.mark.slow
def test_half_samples_are_not_resampled(X: FloatArray) -> None:
    estimator = TruncatedGaussianVNCE(
        linear="zero", penalty_kind="l1", selection="stability", n_subsamples=4
    ).fit(X)
    with pytest.raises(ValueError, match="`stability_` says how stable its edges are"):
        bootstrap(estimator, X)


@pytest.mark.slow
def test_a_resample_is_the_same_in_any_company(fitted: Any, X: FloatArray) -> None:
    together = outcomes_of(fitted, X, range(4))
    assert_same([*outcomes_of(fitted, X, [3, 1]), *outcomes_of(fitted, X, [0, 2])], [
        together[i] for i in (3, 1, 0, 2)
    ])  # fmt: skip
    values = np.array([one.partial_correlation for one in together])
    assert (np.ptp(values, axis=0) > 0).all()  # and no two are the same


def test_rows_without_anything_observed_are_not_drawn(fitted: Any, X: FloatArray) -> None:
    with_empty = np.vstack([np.full((30, X.shape[1]), np.nan), X])
    assert_same(outcomes_of(fitted, with_empty, [7]), outcomes_of(fitted, X, [7]))


@pytest.mark.slow
def test_a_resample_that_is_refused_is_counted_and_says_why() -> None:
    X = table(60, 3, fraction=0.0)
    X[11:, 2] = np.nan  # eleven cells, of which a resample may have fewer than the ten it needs
    fitted = TruncatedGaussianVNCE(linear="zero", penalty=1.0).fit(X)
    outcomes = outcomes_of(fitted, X, range(6))
    refused = [one.cause for one in outcomes if isinstance(one, Failure)]
    assert 0 < len(refused) < 6
    assert all(cause.startswith("refused: ") and "column 2" in cause for cause in refused)


def test_a_fit_out_of_iterations_counts_only_where_that_of_the_whole_table_was(
    X: FloatArray,
) -> None:
    fitted = TruncatedGaussianVNCE(linear="zero", penalty=1.0, max_iter=1).fit(X)
    assert not fitted.converged_
    [outcome] = outcomes_of(fitted, X, [0])
    assert isinstance(outcome, Network)
    patient = TruncatedGaussianVNCE(linear="zero", penalty=1.0).fit(X)
    hasty = patient.set_params(max_iter=1)
    assert outcomes_of(hasty, X, [0]) == [Failure("max_iterations")]


def test_a_bootstrap_stops_when_it_is_told_to_and_tells_how_far_it_is(
    fitted: Any, X: FloatArray
) -> None:
    steps: list[FitStep] = []

    def stop_at_the_third(step: FitStep) -> bool:
        steps.append(step)
        return step.stage == "resample 3"

    with pytest.raises(FitCancelledError):
        bootstrap(fitted, X, 4, on_step=stop_at_the_third)
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert 0.5 <= fractions[-1] < 0.75


@pytest.mark.slow
def test_a_part_goes_on_with_the_resample_at_hand(fitted: Any, X: FloatArray) -> None:
    whole, stored = fit_and_saves(lambda kept: outcomes_of(fitted, X, range(3), checkpoint=kept), 4)
    again = Checkpoint.load(stored[-1])
    assert_same(outcomes_of(fitted, X, range(3), checkpoint=again), whole)
    assert again.num_taken >= 2


@pytest.mark.slow
def test_one_seed_gives_one_answer_of_the_whole(fitted: Any, X: FloatArray) -> None:
    found, again, other = (bootstrap(fitted, X, 4, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(found.inclusion, again.inclusion)
    np.testing.assert_array_equal(found.debiased.mean, again.debiased.mean)
    assert (found.debiased.mean != other.debiased.mean).all()
    assert (found.n_requested, found.n_ok, found.reason, found.failures) == (4, 4, None, {})


def test_only_a_fitted_estimator_and_a_sensible_number_are_taken(
    fitted: Any, X: FloatArray
) -> None:
    with pytest.raises(NotFittedError):
        bootstrap(TruncatedGaussianVNCE(), X)
    wrong: list[Any] = [1, 2_001, 2.5]
    for number in wrong:
        with pytest.raises(ValueError, match="`n_resamples` must be a whole number from 2 to 2000"):
            bootstrap(fitted, X, number)
    with pytest.raises(ValueError, match="features"):
        bootstrap(fitted, X[:, :3])


@pytest.mark.release
def test_resamples_spread_as_far_as_standard_errors_say() -> None:
    """Sixty resamples: their SD has a relative error of 1/√120 = .09, and so has its mean.

    The sandwich's own is about 1/√600 = .04.
    """
    cells = table(300, 3, fraction=0.3)
    fitted = TruncatedGaussianVNCE(linear="zero").fit(cells)
    edges = sorted(fitted.edges_, key=lambda edge: (edge.source, edge.target))
    errors = np.array([edge.standard_error for edge in edges])
    found = bootstrap(fitted, cells, 60)
    assert found.n_ok == 60
    ratio = found.debiased.standard_deviation / errors
    assert abs(ratio.mean() - 1) < 4 * np.hypot(120**-0.5, 600**-0.5)
