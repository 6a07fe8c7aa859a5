"""The NCE objective of a Gaussian with missing cells, its slope and its curvature.

With log phi(x) = -½ xᵀ K x + hᵀ x - c on all of R^d the posterior of a row's missing cells is
normal. With it for q, J_VNCE is J_NCE (Theorem 1 of the paper), and the slope of log phi(x_o) is
the posterior mean of the slope of log phi(x), which needs E x and E xxᵀ alone.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine.penalty import Penalty
from vnce_engine.variational.gaussian import (
    GaussianParameters,
    GroupedRows,
    half_log_determinants,
    lower_triangle,
)

# Floats of temporaries in one block of rows: 32 MB.
_BLOCK_FLOATS = 2**22


class Expansion(NamedTuple):
    """The objective about one theta."""

    gradient: Tensor
    """(p,)"""
    curvature: Tensor
    """(p, p), positive semi-definite: minus the second derivative, but for a part whose
    expectation vanishes at the truth."""


@dataclass(frozen=True)
class GaussianSurface:
    """Data and noise rows, and the penalty to be subtracted; theta is that of `Gaussian`."""

    rows: GroupedRows
    """Data rows first, then noise rows."""
    log_noise: Tensor
    """(n + n_noise,): log density of the noise"""
    num_data: int
    penalty: Penalty

    @property
    def log_nu(self) -> Tensor:
        """Log of the noise rows a data row."""
        n = self.num_data
        return self.log_noise.new_tensor((len(self.log_noise) - n) / n).log()

    def value(self, theta: Tensor) -> float:
        """Return the penalised objective, nats a data row; -inf unless K is positive definite."""
        parameters = self._unpack(theta)
        if torch.linalg.cholesky_ex(parameters.precision).info > 0:
            return -torch.inf
        logits = self.log_ratio(theta) - self.log_nu
        n = self.num_data
        total = logsigmoid(logits[:n]).sum() + logsigmoid(-logits[n:]).sum()
        return float(total / n - self.penalty.value(parameters.precision))

    def log_ratio(self, theta: Tensor) -> Tensor:
        """Return log phi(x_o) - log p_noise(x_o) of all rows (n + n_noise,)."""
        parameters = self._unpack(theta)
        covariance, log_normaliser = self._posterior(parameters)
        values = [
            self._log_phi(parameters, rows, covariance, log_normaliser) for rows in self._blocks()
        ]
        return torch.cat(values) - self.log_noise

    def expand(self, theta: Tensor) -> Expansion:
        """Return slope and curvature at a theta with a positive definite K."""
        parameters = self._unpack(theta)
        covariance, _ = self._posterior(parameters)
        logits = self.log_ratio(theta) - self.log_nu
        is_noise = torch.arange(len(logits), device=logits.device) >= self.num_data
        # The slope of each row's term in its log ratio, and how fast it falls.
        pull = torch.where(is_noise, -torch.sigmoid(logits), torch.sigmoid(-logits))
        fall = torch.sigmoid(logits) * torch.sigmoid(-logits)
        gradient = torch.zeros_like(theta)
        curvature = theta.new_zeros(len(theta), len(theta))
        for rows in self._blocks():
            slopes = self._slopes(parameters, rows, covariance)
            gradient += slopes.mT @ pull[rows]
            curvature += slopes.mT @ (fall[rows].unsqueeze(1) * slopes)
        n = self.num_data
        precision = parameters.precision
        return Expansion(
            gradient / n - self._penalty_gradient(precision),
            curvature / n + self._penalty_curvature(precision),
        )

    def _unpack(self, theta: Tensor) -> GaussianParameters:
        return GaussianParameters.unpack(theta, self.rows.u.shape[1])

    def _blocks(self) -> tuple[Tensor, ...]:
        n, d = self.rows.u.shape
        blocks: tuple[Tensor, ...] = torch.arange(n, device=self.rows.u.device).split(
            max(1, _BLOCK_FLOATS // d**2)
        )
        return blocks

    def _posterior(self, parameters: GaussianParameters) -> tuple[Tensor, Tensor]:
        """Return covariance (patterns, d, d), zero where observed, and log normaliser (patterns,).

        Rows that share a pattern share one Cholesky factor.
        """
        factor = self.rows.factors(parameters.precision)
        covariance = torch.cholesky_inverse(factor) * self.rows.both_missing()
        num_missing = self.rows.patterns.to(factor.dtype).sum(dim=1)
        log_normaliser = 0.5 * num_missing * math.log(2 * math.pi) - half_log_determinants(factor)
        return covariance, log_normaliser

    def _completed(
        self, parameters: GaussianParameters, rows: Tensor, covariance: Tensor
    ) -> Tensor:
        """Return rows (b, d) with missing cells at their posterior mean."""
        observed = self.rows.observed_cells()[rows]
        pull = parameters.linear - observed @ parameters.precision
        cells = torch.bmm(covariance[self.rows.pattern[rows]], pull.unsqueeze(2))
        return observed + cells.squeeze(2)

    def _log_phi(
        self,
        parameters: GaussianParameters,
        rows: Tensor,
        covariance: Tensor,
        log_normaliser: Tensor,
    ) -> Tensor:
        """Return log phi of the observed cells (b,): at the posterior mean, times the integral."""
        mean = self._completed(parameters, rows, covariance)
        quadratic = ((mean @ parameters.precision) * mean).sum(dim=1)
        at_mean = mean @ parameters.linear - 0.5 * quadratic - parameters.log_partition
        return at_mean + log_normaliser[self.rows.pattern[rows]]

    def _slopes(self, parameters: GaussianParameters, rows: Tensor, covariance: Tensor) -> Tensor:
        """Return the slope in theta of log phi of the observed cells (b, p)."""
        mean = self._completed(parameters, rows, covariance)
        i, j = lower_triangle(mean.shape[1], mean.device)
        spread = covariance[:, i, j][self.rows.pattern[rows]]
        products = mean[:, i] * mean[:, j] + spread
        # K_ij stands twice in the quadratic form, K_ii once.
        weights = torch.where(i == j, 0.5, 1.0).to(mean.dtype)
        return torch.cat([-weights * products, mean, -torch.ones_like(mean[:, :1])], dim=1)

    def _penalty_gradient(self, precision: Tensor) -> Tensor:
        i, j = lower_triangle(len(precision), precision.device)
        weights = torch.where(i == j, 1.0, 2.0).to(precision.dtype)
        triangle = weights * self.penalty.gradient(precision)[i, j]
        return torch.nn.functional.pad(triangle, (0, len(precision) + 1))

    def _penalty_curvature(self, precision: Tensor) -> Tensor:
        d = len(precision)
        i, j = lower_triangle(d, precision.device)
        part = self.penalty.curvature(precision)
        inverse = part.inverse_k0
        dispersion = torch.diag(inverse.square()) - torch.outer(inverse, inverse) / d
        size = len(i) + d + 1
        curvature = precision.new_zeros(size, size)
        off = (i != j).nonzero().squeeze(1)
        curvature[off, off] = 2 * part.pair_weights[i, j][off]
        on = (i == j).nonzero().squeeze(1)
        curvature[on.unsqueeze(1), on] = part.diagonal_weight * dispersion
        return curvature
