"""Fits on another device give what they give on the CPU, and take and return NumPy all the same."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from vnce_engine.pipeline.gaussian_fit import fit_gaussian

from vnce_engine.black_box import fits
from vnce_engine.black_box.affine_normal import AffineNormal
from vnce_engine.black_box.contrast import Contrast, draw_latents, log_ratio
from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.black_box.gradients import reparametrised, score_function
from vnce_engine.black_box.minibatch_fit import fit_by_adam
from vnce_engine.black_box.network_family import NetworkFamily
from vnce_engine.black_box.overlap import noise_overlap
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.gaussian import Gaussian, GaussianConditional
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.estimators.gaussian import GaussianVNCE
from vnce_engine.experiments.product_latent import ProductLatent
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.pipeline.fit import FitOptions
from vnce_engine.runtime.device import chosen_device

# As close as results on different devices have to be; on the pretended one they are the same.
SAME = {"rtol": 1e-6, "atol": 1e-6}
START = [0.5, -0.5, 1.0, 2.0]
ALPHA = [0.1, 0.1, 0.0, 0.0]
FAMILY = AffineNormal(observed_width=2, latent_width=1)
# A pretended device on every machine, and the real one where there is one.
DEVICES = [
    "elsewhere",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(
            not torch.cuda.is_available(), reason="torch finds no CUDA device on this machine"
        ),
    ),
]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Any:
    if request.param == "elsewhere":
        return request.getfixturevalue("elsewhere")
    return request.param


def table(num_rows: int = 60) -> ArrayLike:
    rng = np.random.default_rng(0)
    return rng.normal(size=(num_rows, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])


def with_gaps() -> ArrayLike:
    X = np.asarray(table())
    X[:15, 0] = X[20:30, 1] = math.nan
    return X


def contrast(X: ArrayLike, latent_width: int, device: Any) -> Contrast:
    noise = GaussianNoise.fit_columns(torch.from_numpy(np.asarray(X)))
    generator = torch.Generator().manual_seed(1)
    return Contrast.draw(
        X,
        noise,
        latent_width=latent_width,
        nu=3,
        num_draws=2,
        generator=generator,
        device=device,
    )


class Posterior:
    """The harmonium's, N(wᵀx, 1); alpha is theta."""

    def rsample(self, alpha: Tensor, u: Tensor, uniforms: Tensor) -> Tensor:
        return FAMILY.rsample(self._affine(alpha), u, uniforms)

    def log_prob(self, alpha: Tensor, z: Tensor, u: Tensor) -> Tensor:
        return FAMILY.log_prob(self._affine(alpha), z, u)

    def _affine(self, alpha: Tensor) -> Tensor:
        return torch.cat([alpha[:2], alpha.new_zeros(2)])


def fitted(method: str, harmonium: Any, device: Any) -> fits.VariationalFit:
    where = contrast(table(), 1, device)
    match method:
        case "jointly":
            return fits.fit_jointly(harmonium, FAMILY, where, START, ALPHA, max_cycles=1)
        case "variational EM":
            return fits.fit_by_variational_em(
                harmonium, FAMILY, where, START, ALPHA, step_iterations=3, max_cycles=1
            )
        case "exact EM":
            return fits.fit_by_exact_em(harmonium, Posterior(), where, START, max_cycles=1)
        case "NCE":
            return fits.fit_nce(harmonium.log_marginal, where, START, max_cycles=1)
        case "Adam":
            generator = torch.Generator().manual_seed(2)
            return fit_by_adam(
                harmonium,
                FAMILY,
                where,
                START,
                ALPHA,
                num_epochs=2,
                batch_size=25,
                generator=generator,
            )
        case _:
            # The ELBO of an unnormalised model has no maximum, but climbs like any other.
            return fits.fit_elbo(harmonium, FAMILY, where.data, START, ALPHA, max_cycles=1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["jointly", "variational EM", "exact EM", "NCE", "Adam", "VI"])
def test_every_fit_is_the_same_on_another_device(
    method: str, harmonium: Any, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A few iterations visit all that many would.
    monkeypatch.setattr(fits, "_FULL_ITERATIONS", 4)
    here, there = fitted(method, harmonium, "cpu"), fitted(method, harmonium, device)
    assert there.status is here.status
    np.testing.assert_allclose(there.theta, here.theta, **SAME)
    np.testing.assert_allclose(there.alpha, here.alpha, **SAME)
    np.testing.assert_allclose(there.objective_path, here.objective_path, **SAME)


def test_missing_cells_are_latent_on_another_device_too(device: Any) -> None:
    start = QuadraticModel.normal(torch.zeros(2).double(), torch.eye(2).double())
    theta = start.packed().tolist()
    here, there = (
        fits.fit_by_variational_em(
            Gaussian(2),
            GaussianConditional(2),
            contrast(with_gaps(), 2, place),
            theta,
            theta,
            step_iterations=2,
            max_cycles=1,
        )
        for place in ("cpu", device)
    )
    np.testing.assert_allclose(there.theta, here.theta, **SAME)
    np.testing.assert_allclose(there.alpha, here.alpha, **SAME)


def test_the_marginal_of_incomplete_rows_is_the_same_on_another_device(device: Any) -> None:
    theta = QuadraticModel.normal(torch.ones(2).double(), 2 * torch.eye(2).double())
    u = torch.from_numpy(np.asarray(with_gaps()))
    here = Gaussian(2).log_marginal(theta.packed(), u)
    there = Gaussian(2).log_marginal(theta.packed().to(device), u.to(device))
    torch.testing.assert_close(there.cpu(), here, **SAME)


@pytest.mark.parametrize("estimator", [reparametrised, score_function])
def test_gradients_of_a_network_are_the_same_on_another_device(estimator: Any, device: Any) -> None:
    model, family = ProductLatent(), NetworkFamily((2, 5, 5, 4))
    alpha = family.start(torch.Generator().manual_seed(3))

    def gradient(place: Any) -> Tensor:
        rows = contrast(table(), 2, place).data
        leaf = alpha.to(rows.u.device).requires_grad_(True)
        arguments = (leaf.new_empty(0), leaf, rows.u, rows.uniforms, torch.sigmoid)
        value = estimator(model, family, *arguments)
        (slope,) = torch.autograd.grad(value, leaf)
        return slope.cpu()

    torch.testing.assert_close(gradient(device), gradient("cpu"), **SAME)


def test_the_product_latents_density_is_the_same_on_another_device(device: Any) -> None:
    u = torch.from_numpy(np.asarray(table(3)))
    there = ProductLatent().log_marginal(u.to(device)).cpu()
    torch.testing.assert_close(there, ProductLatent().log_marginal(u), **SAME)


def test_noise_is_judged_the_same_on_another_device(harmonium: Any, device: Any) -> None:
    def judged(place: Any) -> Any:
        where = contrast(table(), 1, place)
        theta, alpha = (torch.tensor(v).double().to(where.device) for v in (START, ALPHA))
        data, noise = (
            log_ratio(harmonium, theta, rows, draw_latents(FAMILY, alpha, rows))
            for rows in (where.data, where.noise)
        )
        return noise_overlap(data, noise, where.nu)

    here, there = judged("cpu"), judged(device)
    assert there.loss == pytest.approx(here.loss, rel=1e-6)
    assert there.effective_draws == pytest.approx(here.effective_draws, rel=1e-6)


def test_the_device_does_not_change_the_random_numbers(device: Any) -> None:
    here, there = contrast(with_gaps(), 2, "cpu"), contrast(with_gaps(), 2, device)
    for one, other in ((here.data, there.data), (here.noise, there.noise)):
        assert other.u.device.type == torch.device(device).type
        for name in ("u", "log_noise", "uniforms"):
            torch.testing.assert_close(
                getattr(other, name).cpu(), getattr(one, name), rtol=0, atol=0, equal_nan=True
            )


def test_tensors_of_two_devices_do_not_go_together(harmonium: Any, elsewhere: Any) -> None:
    # What the tests above rest on: a tensor left behind on the CPU is an error.
    rows = contrast(table(), 1, elsewhere).data
    with pytest.raises(RuntimeError, match="on the CPU and elsewhere"):
        draw_latents(FAMILY, torch.tensor(ALPHA).double(), rows)


def test_auto_is_cuda_where_there_is_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert chosen_device("auto") == torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert chosen_device("auto") == torch.device("cpu")


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"`device='cuda'` needs a CUDA device"):
        contrast(table(), 1, "cuda")
    with pytest.raises(ValueError, match="`device` must be 'auto', 'cpu' or 'cuda', got 'gpu'"):
        contrast(table(), 1, "gpu")


@pytest.mark.slow
@pytest.mark.parametrize(
    "choices",
    [{"penalty": 1.0}, {"penalty_kind": PenaltyKind.L1, "penalties": (0.05,)}],
    ids=["adaptive", "l1"],
)
def test_a_gaussian_network_is_the_same_on_another_device(device: Any, choices: Any) -> None:
    X = np.random.default_rng(4).normal(size=(80, 4)) @ np.triu(np.ones((4, 4)))
    X[:20, 1] = X[30:50, 3] = np.nan
    observations = Observations.from_array(X)
    options = FitOptions(max_cycles=2, **choices)
    here = fit_gaussian(observations, options, seed=0)
    there = fit_gaussian(observations, replace(options, device=device), seed=0)
    assert there.status is here.status
    assert there.penalty == here.penalty
    for name in ("precision", "linear", "log_partition"):
        torch.testing.assert_close(getattr(there.model, name), getattr(here.model, name), **SAME)
    assert there.diagnostics.mean_classification == pytest.approx(
        here.diagnostics.mean_classification, rel=1e-6
    )


@pytest.mark.parametrize("name", ["gpu", None])
def test_a_gaussian_network_names_a_device_that_it_cannot_use(name: Any) -> None:
    with pytest.raises(ValueError, match="`device` must be 'auto', 'cpu' or 'cuda'"):
        GaussianVNCE(device=name).fit(np.asarray(table()))
