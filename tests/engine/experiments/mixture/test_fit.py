"""The mixture fitted to one sample."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.saves import fit_and_saves
from vnce_engine.experiments.mixture.fit import MixtureFit, fit_mixture
from vnce_engine.experiments.mixture.optimum import CONVERGED_STEP
from vnce_engine.experiments.mixture.options import Estimator, Form, MixtureOptions
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.progress import FitCancelledError
from vnce_engine.runtime.reports import FitStatus, FitStep

SIGMA_1, THETA, N = 2.0, 6.0, 2_000
CONTRASTIVE = [Estimator.VNCE, Estimator.EXACT_EM, Estimator.NCE]


def draw(form: Form, n: int = N, seed: int = 1) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    known_weight = 0.5 if form is Form.NORMALISED else SIGMA_1 / (SIGMA_1 + THETA)
    sigma = np.where(rng.random(n) < known_weight, SIGMA_1, THETA)
    return sigma * rng.normal(size=n)


def fit(form: Form, estimator: Estimator, **options: Any) -> MixtureFit:
    chosen = {"num_starts": 3, "noise_ratio": 2, **options}
    mixture = MixtureOptions(form=form, sigma_1=SIGMA_1, estimator=estimator, **chosen)
    return fit_mixture(draw(form), mixture, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("estimator", list(Estimator))
def test_the_truth_is_within_five_standard_errors(form: Form, estimator: Estimator) -> None:
    found = fit(form, estimator)
    assert found.status is FitStatus.CONVERGED
    assert found.theta_se is not None
    assert abs(found.theta - THETA) < 5 * found.theta_se
    assert found.theta_se < 0.1 * THETA  # so that this says something
    if form is Form.UNNORMALISED:
        true_c = 0.5 * math.log(2 * math.pi) + math.log(SIGMA_1 + THETA)
        assert found.log_partition is not None
        assert found.log_partition_se is not None
        assert abs(found.log_partition - true_c) < 5 * found.log_partition_se
    else:
        assert found.log_partition is None


@pytest.mark.slow
@pytest.mark.parametrize("form", list(Form))
def test_theorem_2_all_contrastive_estimators_end_at_the_same_point(form: Form) -> None:
    found = [fit(form, estimator) for estimator in CONTRASTIVE]
    for other in found[1:]:
        assert found[0].theta_se is not None
        # Each may stop this far before the maximum that they share.
        assert abs(found[0].theta - other.theta) < 2 * CONVERGED_STEP * found[0].theta_se
        assert other.theta_se == pytest.approx(found[0].theta_se, rel=1e-3)
        assert other.objective_path[-1] == pytest.approx(found[0].objective_path[-1], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("estimator", list(Estimator))
def test_the_objective_never_falls(form: Form, estimator: Estimator) -> None:
    path = np.array(fit(form, estimator).objective_path)
    assert len(path) > 1
    assert (np.diff(path) >= -1e-10).all()


@pytest.mark.slow
@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("estimator", [Estimator.NCE, Estimator.MLE])
def test_other_units_change_nothing_but_the_scale(form: Form, estimator: Estimator) -> None:
    options: dict[str, Any] = {"form": form, "estimator": estimator, "num_starts": 2}
    x = draw(form)
    plain = fit_mixture(x, MixtureOptions(sigma_1=SIGMA_1, **options), seed=0)
    scaled = fit_mixture(1000 * x, MixtureOptions(sigma_1=1000 * SIGMA_1, **options), seed=0)
    assert scaled.theta == pytest.approx(1000 * plain.theta, rel=1e-6)
    assert plain.theta_se is not None
    assert scaled.theta_se == pytest.approx(1000 * plain.theta_se, rel=1e-6)
    np.testing.assert_allclose(scaled.responsibilities, plain.responsibilities, atol=1e-6)
    if plain.log_partition is not None:
        assert scaled.log_partition == pytest.approx(plain.log_partition + math.log(1000), abs=1e-6)


@pytest.mark.parametrize("form", list(Form))
def test_responsibilities_are_the_papers_posterior(form: Form) -> None:
    x, found = draw(form), fit(form, Estimator.MLE)
    known = np.exp(-0.5 * (x / SIGMA_1) ** 2)
    other = np.exp(-0.5 * (x / found.theta) ** 2)
    if form is Form.NORMALISED:
        known, other = known / SIGMA_1, other / found.theta
    np.testing.assert_allclose(found.responsibilities, known / (known + other), atol=1e-12)
    expected = 0.5 if form is Form.NORMALISED else SIGMA_1 / (SIGMA_1 + found.theta)
    assert found.known_weight == pytest.approx(expected)


@pytest.mark.parametrize("form", list(Form))
def test_the_objective_of_maximum_likelihood_is_the_log_likelihood_of_the_values(
    form: Form,
) -> None:
    x, found = draw(form), fit(form, Estimator.MLE)
    known, other = (np.exp(-0.5 * (x / sd) ** 2) / sd for sd in (SIGMA_1, found.theta))
    density = found.known_weight * known + (1 - found.known_weight) * other
    expected = np.mean(np.log(density / math.sqrt(2 * math.pi)))
    assert found.objective_path[-1] == pytest.approx(expected, rel=1e-12)
    assert max(start.objective for start in found.starts) == found.objective_path[-1]


@pytest.mark.release
@pytest.mark.parametrize("estimator", [Estimator.NCE, Estimator.MLE])
def test_standard_errors_are_those_of_repeated_samples(estimator: Estimator) -> None:
    options = MixtureOptions(sigma_1=SIGMA_1, estimator=estimator, noise_ratio=1, num_starts=6)
    num_samples = 200
    z = []
    for seed in range(num_samples):
        found = fit_mixture(draw(Form.UNNORMALISED, 300, seed), options, seed)
        assert found.theta_se is not None
        z.append((found.theta - THETA) / found.theta_se)
    # z² has mean 1 and variance 2 where z is standard normal.
    assert abs(np.mean(np.square(z)) - 1) < 5 * math.sqrt(2 / num_samples)


@pytest.mark.release
def test_standard_errors_are_those_of_repeated_samples_where_the_model_is_wrong() -> None:
    """The best theta then depends on the noise, whose spread is the sample's."""
    options = MixtureOptions(sigma_1=SIGMA_1, estimator=Estimator.NCE, noise_ratio=1, num_starts=4)
    num_samples, n = 100, 500
    estimates, errors = [], []
    for seed in range(num_samples):
        rng = np.random.default_rng(seed)
        sigma = rng.choice([SIGMA_1, THETA, 4 * THETA], p=[0.25, 0.7, 0.05], size=n)
        found = fit_mixture(sigma * rng.normal(size=n), options, seed)
        assert found.theta_se is not None
        estimates.append(found.theta)
        errors.append(found.theta_se)
    z = (np.array(estimates) - np.mean(estimates)) / np.array(errors)
    # z² has mean 1 and variance 2 where z is standard normal.
    assert abs(np.mean(np.square(z)) - 1) < 5 * math.sqrt(2 / num_samples)


def test_a_fit_that_may_not_go_on_says_how_far_it_is() -> None:
    found = fit(Form.UNNORMALISED, Estimator.NCE, max_iterations=2)
    assert found.status is FitStatus.MAX_ITERATIONS
    assert "standard errors before" in found.message or "no maximum" in found.message


def test_theta_that_has_shrunk_to_nothing_is_no_estimate() -> None:
    x = np.random.default_rng(4).normal(size=400)  # of the known component alone
    options = MixtureOptions(estimator=Estimator.MLE, num_starts=1)
    ends = [fit_mixture(x, options, seed) for seed in range(8)]
    shrunk = [found for found in ends if found.theta < 1e-3]
    assert shrunk
    for found in shrunk:
        assert (found.status, found.theta_se) == (FitStatus.MAX_ITERATIONS, None)
        assert "no maximum" in found.message


def test_values_too_large_for_any_arithmetic_are_a_status() -> None:
    x = 1e200 * draw(Form.NORMALISED)
    options = MixtureOptions(estimator=Estimator.VNCE, num_starts=2)
    assert fit_mixture(x, options, seed=0).status is FitStatus.NON_FINITE


def test_the_starts_that_reached_the_best_optimum_are_counted() -> None:
    found = fit(Form.UNNORMALISED, Estimator.NCE, num_starts=8)
    best = max(start.objective for start in found.starts)
    near = [start for start in found.starts if start.objective > best - 1e-5]
    assert len(found.starts) == 8
    assert found.num_best == len(near)
    assert {start.is_best for start in near} == {True}
    assert str(len(near)) in found.message


@pytest.mark.slow
def test_one_start_above_all_others_is_a_warning() -> None:
    # Some of these starts end where theta is nothing and c alone fits.
    x = draw(Form.UNNORMALISED)
    options = MixtureOptions(sigma_1=SIGMA_1, estimator=Estimator.NCE, noise_ratio=2, num_starts=2)
    fits = [fit_mixture(x, options, seed) for seed in range(12)]
    lonely = [found for found in fits if found.num_best == 1]
    assert lonely
    for found in fits:
        codes = [warning.code for warning in found.warnings]
        assert ("starts-disagree" in codes) == (found.num_best == 1)


def test_a_mean_far_from_zero_is_a_warning() -> None:
    x = draw(Form.NORMALISED)
    options = MixtureOptions(estimator=Estimator.MLE, form=Form.NORMALISED)
    assert fit_mixture(x - x.mean(), options, seed=0).warnings == ()
    [warning] = fit_mixture(x + 2, options, seed=0).warnings
    assert warning.code == "not-centred"


def test_noise_far_wider_than_the_data_is_a_warning() -> None:
    found = fit(Form.NORMALISED, Estimator.NCE, noise_scale=500.0, num_starts=1)
    assert "noise-overlap" in [warning.code for warning in found.warnings]
    assert found.noise_sigma == pytest.approx(500 * np.sqrt(np.mean(draw(Form.NORMALISED) ** 2)))


def test_the_same_seed_gives_the_same_bits() -> None:
    first, second = (fit(Form.UNNORMALISED, Estimator.NCE) for _ in range(2))
    assert (first.theta, first.objective_path) == (second.theta, second.objective_path)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [Estimator.NCE, Estimator.EXACT_EM])
def test_a_fit_goes_on_from_any_save_to_the_same_end(
    estimator: Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two of the three starts, then the third.
    monkeypatch.setattr("vnce_engine.experiments.mixture.fit._VALUES_AT_A_TIME", 6 * N)
    options = MixtureOptions(estimator=estimator, num_starts=3, noise_ratio=2)
    x = draw(Form.UNNORMALISED)
    whole, stored = fit_and_saves(
        lambda checkpoint: fit_mixture(x, options, 0, None, checkpoint), 6
    )
    assert len(stored) >= 2
    for content in stored:
        checkpoint = Checkpoint.load(content)
        resumed = fit_mixture(x, options, 0, checkpoint=checkpoint)
        assert checkpoint.num_taken > 0
        # EM ends where a step gains less than 1e-12; where it is taken up it takes another one.
        assert resumed.theta == pytest.approx(whole.theta, rel=1e-5)
        assert resumed.objective_path[-1] == pytest.approx(whole.objective_path[-1], abs=1e-10)
        assert (resumed.status, resumed.num_best) == (whole.status, whole.num_best)
    with pytest.raises(UnusableCheckpointError):
        fit_mixture(x, options, 1, checkpoint=Checkpoint.load(stored[0]))


@pytest.mark.parametrize("estimator", [Estimator.NCE, Estimator.EXACT_EM])
def test_progress_never_falls_and_true_stops_the_fit(estimator: Estimator) -> None:
    steps: list[FitStep] = []
    options = MixtureOptions(estimator=estimator, num_starts=2)
    fit_mixture(draw(Form.UNNORMALISED), options, 0, steps.append)
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert 0 < fractions[0] < fractions[-1] < 1
    with pytest.raises(FitCancelledError):
        fit_mixture(draw(Form.UNNORMALISED), options, 0, lambda _: True)


@pytest.mark.parametrize(
    ("x", "told"),
    [
        (np.zeros((10, 2)), r"vector .* got shape \(10, 2\)"),
        (np.arange(5.0), "at least 6"),
        (np.array([1.0, 2, 3, 4, 5, np.nan]), "1 of them not finite"),
        (np.full(10, 3.0), "different values, got 3.0 alone"),
    ],
)
def test_what_no_mixture_can_be_fitted_to_is_refused(x: NDArray[np.float64], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        fit_mixture(x, MixtureOptions(), seed=0)


def test_exact_zeros_are_refused_where_the_likelihood_has_no_bound() -> None:
    x = np.concatenate([draw(Form.NORMALISED), [0.0, 0.0]])
    unbounded = MixtureOptions(form=Form.NORMALISED, estimator=Estimator.MLE)
    with pytest.raises(ValueError, match="2 exact zeros"):
        fit_mixture(x, unbounded, seed=0)
    for options in (
        MixtureOptions(form=Form.UNNORMALISED, estimator=Estimator.MLE),
        MixtureOptions(form=Form.NORMALISED, estimator=Estimator.NCE),
    ):
        assert fit_mixture(x, options, seed=0).theta > 1


@pytest.mark.parametrize(
    ("choice", "value"),
    [
        ("form", "other"),
        ("estimator", "bayes"),
        ("sigma_1", 0.0),
        ("sigma_1", math.inf),
        ("noise_scale", -1.0),
        ("noise_ratio", 0),
        ("num_starts", 0),
        ("max_iterations", 0),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(choice: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"`{choice}` must be"):
        MixtureOptions(**{choice: value})
