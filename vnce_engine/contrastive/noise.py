"""The noise distribution: a product of univariate truncated normals, fitted column by column."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from vnce_engine.data.observations import Observations
from vnce_engine.distributions import truncated_normal


class Noise(Protocol):
    """A distribution of rows (n, d) of which the density of any of their cells is known."""

    def log_prob(self, values: Tensor, observed: Tensor) -> Tensor:
        """Return the log marginal density (n,) of the cells that are `observed`, bool (n, d)."""

    def sample(self, uniforms: Tensor) -> Tensor:
        """Map uniforms (n, d), strictly between 0 and 1, to complete rows (n, d)."""


@dataclass(frozen=True)
class ProductTruncatedNormal:
    """Independent normals truncated to [0, inf), one a column; a `Noise`.

    `mu` and `sigma`, float64 (d,), are the parameters of the parent normals. The product form
    makes every marginal density known, which noise rows with missing cells need.
    Source: Rhodes and Gutmann (2019), Section 5.1 and the appendix on the noise distribution.
    """

    mu: Tensor
    sigma: Tensor

    @classmethod
    def fit(cls, observations: Observations) -> "ProductTruncatedNormal":
        """Match mean and variance of the observed cells of each column.

        Where the variance is at least the squared mean, only the mean can be matched (see
        `truncated_normal.match_moments`). Raises `ValueError` naming the first column (counted
        from 0) that has no two different observed values, or a negative one.
        """
        mean, variance = observations.moments()
        _refuse_columns(variance <= 0, "needs at least two different observed values")
        _refuse_columns((observations.values < 0).any(dim=0), "has a negative value")
        return cls(*truncated_normal.match_moments(mean, variance))

    def mean(self) -> Tensor:
        """Return the mean (d,) of each column."""
        return truncated_normal.moments(self.mu, self.sigma)[0]

    def log_prob(self, values: Tensor, observed: Tensor) -> Tensor:
        """Return the log marginal density (n,) of the observed coordinates of each row.

        Shapes: `values` (n, d), ignored where `observed`, bool (n, d), is False.
        """
        log_density = truncated_normal.log_prob(values, self.mu, self.sigma)
        return torch.where(observed, log_density, 0.0).sum(dim=-1)

    def sample(self, uniforms: Tensor) -> Tensor:
        """Map uniforms (n, d), strictly between 0 and 1, to complete rows (n, d)."""
        return truncated_normal.quantile(uniforms, self.mu, self.sigma)


def _refuse_columns(bad: Tensor, rule: str) -> None:
    if bad.any():
        raise ValueError(f"column {int(bad.nonzero()[0])} (counted from 0) {rule}")
