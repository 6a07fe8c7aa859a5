"""The noise distribution: normals truncated to [0, inf), one a column, joined by a copula."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.special import ndtr, ndtri

from vnce_engine.contrastive.correlations import fitted_correlations
from vnce_engine.data.observations import Observations
from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.quadratic import QuadraticModel

# Beyond these normal scores the copula takes a value for one of them: 6e-5 of each column's
# probability. Without an end, zeros of two columns would be all but certain to be noise.
_LARGEST_SCORE = 4.0
# Numbers in the matrices of patterns that are in memory at a time: 32 MB.
_CHUNK = 2**22
_LARGEST_UNIFORM = 1 - 2.0**-53


@dataclass(frozen=True)
class ProductTruncatedNormal:
    """Independent normals truncated to [0, inf), one a column.

    `mu` and `sigma`, float64 (d,), are the parameters of the parent normals.
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

    def widened(self, factor: float) -> "ProductTruncatedNormal":
        """Return it spread out by `factor` about the mode of each column.

        Parent normals are stretched about max(mu, 0): where mu < 0, so that the density falls from
        0 on, draws are simply `factor` times as large.
        """
        mode = self.mu.clamp(min=0)
        return ProductTruncatedNormal(mode + factor * (self.mu - mode), factor * self.sigma)

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


@dataclass(frozen=True)
class CopulaNoise:
    """Truncated normals whose normal scores are jointly normal, with these correlations.

    The density of any cells of a row is known, which noise rows with missing cells need, and it is
    near the data's also where columns depend on each other strongly. Independent noise is then told
    from data by a few rows alone, and leaves far more of an estimate to chance.
    """

    marginals: ProductTruncatedNormal
    correlation: Tensor
    """(d, d), positive definite."""

    @classmethod
    def fit(cls, marginals: ProductTruncatedNormal, observations: Observations) -> "CopulaNoise":
        """Fit correlations to the normal scores of the observed cells."""
        scores = _scores(observations.values, marginals)
        return cls(marginals, fitted_correlations(scores, observations.observed))

    def model_of_its_moments(self) -> QuadraticModel:
        """Return the truncated Gaussian that has about these means, variances and correlations.

        It has them where columns are far from zero.
        """
        mean, variance = truncated_normal.moments(self.marginals.mu, self.marginals.sigma)
        scale = variance.rsqrt()
        precision = torch.cholesky_inverse(_factor(self.correlation))
        return QuadraticModel.normal(mean, precision * scale * scale.unsqueeze(1))

    def log_prob(self, values: Tensor, observed: Tensor) -> Tensor:
        """Return the log marginal density (n,) of the observed coordinates of each row.

        Shapes: `values` (n, d), ignored where `observed`, bool (n, d), is False.
        """
        scores = torch.where(observed, _scores(values, self.marginals), 0.0)
        parts = []
        for rows in self._parts(len(values)):
            factor = self._factors(observed[rows])
            own = scores[rows].unsqueeze(2)
            white = torch.linalg.solve_triangular(factor, own, upper=False)
            parts.append(_log_copula(factor, own, white).squeeze(1))
        return self.marginals.log_prob(values, observed) + torch.cat(parts)

    def draw(self, uniforms: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
        """Map uniforms (c, n, d), strictly between 0 and 1, to c rows (c, n, d) of each of n masks.

        Returns their log marginal densities (c, n), too. Of the uniforms only those of `observed`
        cells, bool (n, d), have a part in either; what the others are mapped to is no sample.
        """
        values, log_densities = [], []
        for rows in self._parts(len(observed)):
            factor, mask = self._factors(observed[rows]), observed[rows]
            white = ndtri(uniforms[:, rows]).permute(1, 2, 0) * mask.unsqueeze(2)
            scores = factor @ white
            drawn = self.marginals.sample(
                ndtr(scores).clamp_(max=_LARGEST_UNIFORM).permute(2, 0, 1)
            )
            log_copula = _log_copula(factor, scores, white).mT
            values.append(drawn)
            log_densities.append(self.marginals.log_prob(drawn, mask) + log_copula)
        return torch.cat(values, dim=1), torch.cat(log_densities, dim=1)

    def _parts(self, num_rows: int) -> list[slice]:
        """Return ranges of rows of which the factors are in memory at a time."""
        step = max(1, _CHUNK // self.correlation.numel())
        return [slice(start, start + step) for start in range(0, num_rows, step)]

    def _factors(self, observed: Tensor) -> Tensor:
        """Return (n, d, d): Cholesky factors of the observed cells' correlations, bool (n, d).

        That of the identity elsewhere, so that all are of one size.
        """
        masks, mask = torch.unique(observed, dim=0, return_inverse=True)
        both = masks.unsqueeze(2) & masks.unsqueeze(1)
        identity = torch.eye(len(self.correlation), dtype=torch.float64, device=masks.device)
        return _factor(torch.where(both, self.correlation, identity))[mask]


def _scores(values: Tensor, marginals: ProductTruncatedNormal) -> Tensor:
    scores = truncated_normal.normal_scores(values, marginals.mu, marginals.sigma)
    return scores.clamp_(-_LARGEST_SCORE, _LARGEST_SCORE)


def _factor(matrix: Tensor) -> Tensor:
    factor: Tensor = torch.linalg.cholesky(matrix)
    return factor


def _log_copula(factor: Tensor, scores: Tensor, white: Tensor) -> Tensor:
    """Return the log density (n, c) of scores (n, d, c), factor times white, over independent ones.

    Both are 0, and the factor (n, d, d) the identity's, where a cell is missing.
    """
    exponent = 0.5 * (scores.square() - white.square()).sum(dim=1)
    return exponent - factor.diagonal(dim1=1, dim2=2).log().sum(dim=1, keepdim=True)


def _refuse_columns(bad: Tensor, rule: str) -> None:
    if bad.any():
        raise ValueError(f"column {int(bad.nonzero()[0])} (counted from 0) {rule}")
