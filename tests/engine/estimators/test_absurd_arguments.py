"""An argument that makes no sense is refused at once, by an error that names it and its value."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vnce_engine
from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.distributions.interval import IntervalNormal
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.experiments.graph_recovery import GraphRecovery
from vnce_engine.experiments.mixture.fit import fit_mixture
from vnce_engine.experiments.mixture.options import MixtureOptions
from vnce_engine.experiments.mixture_em import MixtureEm
from vnce_engine.experiments.mixture_population import MixturePopulation
from vnce_engine.experiments.posterior_toy import PosteriorToy
from vnce_engine.runtime.checks import shown
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

ESTIMATORS: list[Any] = [
    each
    for name in vnce_engine.__all__
    if inspect.isclass(each := getattr(vnce_engine, name)) and issubclass(each, NetworkEstimator)
]
X = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
HUGE = 10**400  # beyond every floating-point number
COUNTS = {"noise_ratio", "max_iter", "n_subsamples", "n_draws", "burn_in", "thinning", "num_sweeps"}
NUMBERS = {
    *("penalty", "max_false_edges", "ebic_gamma", "inclusion_threshold", "noise_scale", "tol"),
    *("edge_threshold", "step_size"),
}


def refused_everywhere(value: Any, names: set[str] | None = None) -> None:
    """Try the value for all parameters of all estimators, or for those of the given names."""
    for estimator in ESTIMATORS:
        for name in inspect.signature(estimator).parameters:
            if names is None or name in names:
                refused(estimator, name, value)


def refused(estimator: Any, name: str, value: Any) -> None:
    argument = [value] if name == "penalties" else value
    with pytest.raises(ValueError, match="must be") as error:
        estimator(**{name: argument}).fit(X)
    message = str(error.value)
    assert f"`{name}`" in message, estimator
    assert f"got {shown(value)}" in message, estimator


@pytest.mark.parametrize(
    "value", [1j, np.complex128(1j), {}, b"x", np.array([1, 2])], ids=lambda v: type(v).__name__
)
def test_a_value_of_no_sensible_type(value: object) -> None:
    refused_everywhere(value)


@pytest.mark.parametrize("value", [10**30, HUGE, -HUGE, np.int64(2**62), 1.0, True], ids=shown)
def test_a_count_that_no_fit_would_come_to_the_end_of(value: object) -> None:
    refused_everywhere(value, COUNTS)


@pytest.mark.parametrize("value", [HUGE, -HUGE, np.nan, np.inf, -1.0, True], ids=shown)
def test_a_number_that_is_none_or_out_of_range(value: object) -> None:
    refused_everywhere(value, NUMBERS)


@pytest.mark.parametrize("device", [10**30, 0, None, "gpu", "cuda:-1", ["cpu"]])
def test_a_device_that_is_none(device: object) -> None:
    refused(vnce_engine.GaussianVNCE, "device", device)


def test_a_cell_too_large_for_a_floating_point_number() -> None:
    with pytest.raises(ValueError, match="X must hold floating-point numbers"):
        vnce_engine.GaussianEM().fit([[HUGE, 1.0], *([[1.0, 2.0]] * 9)])


def test_a_whole_number_penalty_is_the_same_as_a_real_one() -> None:
    penalties: list[Any] = [2, np.int64(2), 2.0]
    fits = [vnce_engine.TruncatedGaussianScoreMatching(penalty=p).fit(X) for p in penalties]
    assert {fit.penalty_ for fit in fits} == {2.0}
    assert all((fit.precision_ == fits[0].precision_).all() for fit in fits)


RNG = np.random.default_rng(1)
ABSURD: list[tuple[str, Callable[[Any], object]]] = [
    ("noise_ratio", lambda value: MixtureOptions(noise_ratio=value)),
    ("num_starts", lambda value: MixtureOptions(num_starts=value)),
    ("sigma_1", lambda value: MixtureOptions(sigma_1=value)),
    ("seed", lambda value: fit_mixture(X[:, 0], MixtureOptions(), value)),
    ("x", lambda value: fit_mixture([value] * 9, MixtureOptions(), 0)),
    ("d", lambda value: ring_precision(value, RNG)),
    ("n", lambda value: sample_truncated_gaussian(np.eye(2), value, RNG)),
    ("burn_in", lambda value: sample_truncated_gaussian(np.eye(2), 3, RNG, burn_in=value)),
    ("thinning", lambda value: sample_truncated_gaussian(np.eye(2), 3, RNG, thinning=value)),
    ("fraction", lambda value: mask_completely_at_random(X, value, RNG)),
    ("num_draws", lambda value: IntervalNormal(0, 1).sample(value, RNG)),
    ("mu", lambda value: IntervalNormal(value, 1).log_mass()),
    ("num_rows", lambda value: GraphRecovery(num_rows=value)),
    ("fractions", lambda value: GraphRecovery(fractions=(value,))),
    ("num_truths", lambda value: MixturePopulation(num_truths=value)),
    ("sample_sizes", lambda value: MixturePopulation(sample_sizes=(value,))),
    ("step_size", lambda value: PosteriorToy(step_size=value)),
    ("truth", lambda value: MixtureEm(truth=value)),
    ("variance", lambda value: GaussianNoise.isotropic(value, 2)),
]


@pytest.mark.parametrize(("name", "call"), ABSURD, ids=[name for name, _ in ABSURD])
@pytest.mark.parametrize("value", [HUGE, 1j, "x"], ids=["huge", "complex", "text"])
def test_every_other_argument(name: str, call: Callable[[Any], object], value: object) -> None:
    with pytest.raises(ValueError, match=rf"`{name}` must .*, got "):
        call(value)


def test_a_number_too_long_to_be_printed_is_described() -> None:
    assert shown(10**5000) == "a number of thousands of digits"
    assert len(shown("x" * 10**6)) < 100
