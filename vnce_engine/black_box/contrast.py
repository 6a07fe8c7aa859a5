"""Data and noise side by side, each row with the uniforms that drive its latent draws."""

from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from vnce_engine.black_box.protocols import (
    NoiseDistribution,
    UnnormalisedModel,
    VariationalFamily,
)
from vnce_engine.contrastive.objective import ObjectiveTerms, vnce_objective
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.runtime.checks import as_array, as_number, check_count, shown
from vnce_engine.runtime.device import chosen_device

# More would not fit into memory.
_MOST_NOISE_ROWS = 100_000_000


@dataclass(frozen=True)
class Rows:
    """Rows of one class, and what does not change while parameters do."""

    u: Tensor
    """(n, d), NaN where missing"""
    log_noise: Tensor
    """(n,): log density of the noise"""
    uniforms: Tensor
    """(k, n, m)"""

    def to(self, device: torch.device) -> "Rows":
        """Return the rows on a device."""
        return Rows(self.u.to(device), self.log_noise.to(device), self.uniforms.to(device))


@dataclass(frozen=True)
class Draws:
    """Latent draws of some rows, and their log density."""

    z: Tensor
    """(k, n, m)"""
    log_q: Tensor
    """(k, n)"""


@dataclass(frozen=True)
class Contrast:
    """What VNCE compares; fixed, so that the objective is a smooth function of the parameters."""

    data: Rows
    noise: Rows

    @classmethod
    def draw(
        cls,
        X: ArrayLike,
        noise: NoiseDistribution,
        *,
        latent_width: int,
        nu: float,
        num_draws: int,
        generator: torch.Generator,
        device: str | torch.device = "cpu",
    ) -> "Contrast":
        """Set a table X (n, d), NaN where missing, against about nu n rows of noise.

        Every noise row carries the missing cells of a data row, which is right if cells are missing
        completely at random. `generator` and `noise` are on the CPU and all is drawn there, so that
        the numbers do not depend on the `device`, "auto", "cpu" or "cuda", to which it is moved and
        on which fits then work. Raises `ValueError` unless X is a table, finite or NaN, `nu` and
        `num_draws` give at least one row and one draw, and there is such a device.
        """
        device = chosen_device(device)
        x = torch.from_numpy(as_array("X", X))
        if x.ndim != 2 or not x.numel():
            raise ValueError(
                f"`X` must be a table with rows and columns, got shape {tuple(x.shape)}"
            )
        if torch.isinf(x).any():
            raise ValueError("`X` must be finite or NaN (missing), got an infinity")
        if not 0.5 < as_number(nu) * len(x) <= _MOST_NOISE_ROWS:
            raise ValueError(
                f"`nu` must give from one to {_MOST_NOISE_ROWS} noise rows, got {shown(nu)}, "
                f"n = {len(x)}"
            )
        check_count("num_draws", num_draws)
        num_noise = round(nu * len(x))
        y = noise.sample(open_uniforms((num_noise, x.shape[1]), generator))
        owners = torch.arange(num_noise) % len(x)
        y = torch.where(torch.isnan(x[owners]), torch.nan, y)

        def rows(u: Tensor) -> Rows:
            uniforms = open_uniforms((num_draws, len(u), latent_width), generator)
            return Rows(u, noise.log_prob(u), uniforms).to(device)

        return cls(rows(x), rows(y))

    @property
    def device(self) -> torch.device:
        """Where all tensors are."""
        return self.data.u.device

    @property
    def nu(self) -> float:
        """Noise rows a data row."""
        return len(self.noise.u) / len(self.data.u)


def draw_latents(family: VariationalFamily, alpha: Tensor, rows: Rows) -> Draws:
    """Return draws from q for all `rows`, differentiable in alpha."""
    z = family.rsample(alpha, rows.u, rows.uniforms)
    return Draws(z, family.log_prob(alpha, z, rows.u))


def log_ratio(model: UnnormalisedModel, theta: Tensor, rows: Rows, draws: Draws) -> Tensor:
    """Return log phi - log q - log p_noise, (k, n)."""
    return model.log_phi(theta, rows.u, draws.z) - draws.log_q - rows.log_noise


def vnce_terms(
    model: UnnormalisedModel, theta: Tensor, contrast: Contrast, data: Draws, noise: Draws
) -> ObjectiveTerms:
    """Return J_VNCE's two terms for given draws, nats a data row.

    Importance sampling of phi(y) is right with any proposal: the noise rows' draws may come from
    another q than the data rows'.
    """
    return vnce_objective(
        log_ratio(model, theta, contrast.data, data),
        log_ratio(model, theta, contrast.noise, noise),
        contrast.nu,
    )
