"""What a model, a family for its latents and a noise distribution have to be.

Shapes: k draws, n rows, d observed and m latent coordinates. Parameters are flat vectors, theta
(p,) of the model and alpha (a,) of the family, so that any optimiser serves any model. Everything
is written in torch, float64, and differentiable by autograd.

Missing cells are latent variables too. They are NaN in u, and z is then the completed row (m = d),
which repeats the observed cells: a model of complete rows looks at z alone, a family draws the
missing cells and gives their density, and noise gives the marginal density of the observed ones.
"""

from typing import Protocol

from torch import Tensor


class UnnormalisedModel(Protocol):
    """A density of observed u and latent z, known up to its integral."""

    def log_phi(self, theta: Tensor, u: Tensor, z: Tensor) -> Tensor:
        """Return log phi(u, z; theta), (k, n), for u (n, d) and z (k, n, m).

        Where the integral is unknown, theta holds the paper's c, and -c is part of the answer.
        """


class VariationalFamily(Protocol):
    """Densities q(z | u; alpha) that can be sampled and evaluated."""

    def rsample(self, alpha: Tensor, u: Tensor, uniforms: Tensor) -> Tensor:
        """Map uniforms (k, n, m) in (0, 1) to draws z (k, n, m), differentiably in alpha.

        Equal uniforms give equal draws, so that the objective is a fixed function.
        """

    def log_prob(self, alpha: Tensor, z: Tensor, u: Tensor) -> Tensor:
        """Return log q(z | u; alpha), (k, n)."""


class NoiseDistribution(Protocol):
    """A distribution of observed rows, of known density."""

    def sample(self, uniforms: Tensor) -> Tensor:
        """Map uniforms (n, d) in (0, 1) to rows (n, d)."""

    def log_prob(self, u: Tensor) -> Tensor:
        """Return the log density (n,) of rows u (n, d), of their observed cells if some are NaN."""
