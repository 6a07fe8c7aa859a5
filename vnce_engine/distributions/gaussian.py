"""The Gaussian on all of R^d, its missing cells latent, and its exact conditional as a family.

    log phi(x) = -½ xᵀ K x + hᵀ x - c,   x in R^d,   K positive definite

theta is that of `QuadraticModel.packed`. A family with theta for its alpha is the posterior itself,
and J_VNCE is then J_NCE (Theorem 1 of the paper).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.distributions.gaussian_conditional import CompletedRows, log_marginal
from vnce_engine.distributions.quadratic import QuadraticModel


@dataclass(frozen=True)
class Gaussian:
    """The model, an `UnnormalisedModel`; z is the completed row."""

    num_columns: int

    def log_phi(self, theta: Tensor, u: Tensor, z: Tensor) -> Tensor:
        """Return log phi (..., n) of completed rows z (..., n, d)."""
        return QuadraticModel.unpack(theta, self.num_columns).log_phi(z)

    def log_marginal(self, theta: Tensor, u: Tensor) -> Tensor:
        """Return log phi (n,) of the observed cells of u (n, d), the others integrated out."""
        return log_marginal(QuadraticModel.unpack(theta, self.num_columns), u)


@dataclass(frozen=True)
class GaussianConditional:
    """q(missing | observed) of a Gaussian, a `VariationalFamily`; alpha is a theta of `Gaussian`.

    Its c is not used. With alpha = theta it is the model's posterior.
    """

    num_columns: int

    def rsample(self, alpha: Tensor, u: Tensor, uniforms: Tensor) -> Tensor:
        """Map uniforms (k, n, d) in (0, 1) to completed rows z (k, n, d)."""
        rows = self._completed(alpha, u)
        standard: Tensor = torch.special.ndtri(uniforms)
        standard = torch.where(rows.is_missing, standard, 0.0)
        upper = rows.conditionals.factor[rows.pattern].mT
        spread: Tensor = torch.linalg.solve_triangular(upper, standard.permute(1, 2, 0), upper=True)
        return rows.mean + spread.permute(2, 0, 1)

    def log_prob(self, alpha: Tensor, z: Tensor, u: Tensor) -> Tensor:
        """Return log q (k, n) of the missing cells of completed rows z (k, n, d)."""
        rows = self._completed(alpha, u)
        deviation = z - rows.mean
        squares = ((deviation @ rows.conditionals.precision) * deviation).sum(dim=-1)
        return -0.5 * squares - rows.log_integral()

    def _completed(self, alpha: Tensor, u: Tensor) -> CompletedRows:
        parameters = QuadraticModel.unpack(alpha, self.num_columns)
        return CompletedRows.of(parameters.precision, parameters.linear, u)
