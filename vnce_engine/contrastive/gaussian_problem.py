"""A table of any sign made ready for fitting a Gaussian: standardised columns, Gaussian noise."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from vnce_engine.contrastive.gaussian_newton import GaussianCycles
from vnce_engine.contrastive.gaussian_sample import (
    GaussianSample,
    log_density,
    of_possible_spread,
)
from vnce_engine.contrastive.prepared import PreparedTable
from vnce_engine.contrastive.truncated_sample import noise_points
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.runtime.progress import Progress

# Share of the best noise's chance of being taken for data from which noise is near enough. A first
# fit of strongly dependent columns is poor, as independent noise is far from them.
_NEAR = 0.98


@dataclass(frozen=True)
class GaussianProblem(PreparedTable[GaussianSample]):
    """A table, columns at mean 0 and variance 1, against noise that is a Gaussian too.

    Noise has independent columns at first. For the last cycles it is the Gaussian that the others
    have found, which is near the data and has known marginals for every pattern of missing cells.
    """

    mean: Tensor
    """(d,): mean of each column's observed cells, in the units of the table."""
    pattern: Tensor
    """int64 (n,): the pattern of missing cells of each row."""
    patterns: Tensor
    """bool (number of patterns, d): True where missing."""
    noise: QuadraticModel
    """The noise, normalised."""
    noise_ratio: int
    noise_scale: float
    """Factor on the standard deviations of the noise, which otherwise resembles the data."""
    new_points: Callable[[], Callable[[int], Tensor]]
    """Makes a new source of uniforms (n, d) for noise."""
    points: Callable[[int], Tensor]
    """The source that `sample` has taken the first of."""

    @classmethod
    def prepare(
        cls,
        observations: Observations,
        noise_ratio: int,
        noise_draws: str,
        generator: torch.Generator,
        noise_scale: float = 1.0,
    ) -> "GaussianProblem":
        """Standardise the columns, and draw independent noise."""
        scaled, mean, scale = standardised_columns(observations)
        patterns, pattern = torch.unique(~scaled.observed, dim=0, return_inverse=True)
        device = scale.device
        new_points = partial(noise_points, scaled.num_columns, noise_draws, generator, device)
        noise, points = _independent(scale).normalised(noise_scale), new_points()
        rows = torch.arange(scaled.num_rows, device=device)
        return cls(
            observations=scaled,
            scale=scale,
            sample=_sample(scaled, rows, pattern, patterns, noise, noise_ratio, points),
            generator=generator,
            mean=mean,
            pattern=pattern,
            patterns=patterns,
            noise=noise,
            noise_ratio=noise_ratio,
            noise_scale=noise_scale,
            new_points=new_points,
            points=points,
        )

    def subsample(self, rows: Tensor) -> GaussianSample:
        """Return the given rows alone, int64 (r,), against new noise as much as `sample` has."""
        return _sample(
            self.observations,
            rows,
            self.pattern,
            self.patterns,
            self.noise,
            self.noise_ratio,
            self.points,
        )

    def with_at_most(self, num_rows: int) -> "GaussianProblem":
        """Return the problem of so many rows, drawn at random, in their order and units."""
        if self.num_rows <= num_rows:
            return self
        drawn = torch.randperm(self.num_rows, generator=self.generator)[:num_rows]
        rows = drawn.sort().values.to(self.scale.device)
        patterns, pattern = torch.unique(
            self.patterns[self.pattern[rows]], dim=0, return_inverse=True
        )
        part = replace(
            self,
            observations=self.observations.of_rows(rows),
            pattern=pattern,
            patterns=patterns,
        )
        return replace(part, sample=part.subsample(torch.arange(num_rows, device=rows.device)))

    def final_sample(self, augmented: Tensor) -> GaussianSample:
        """Return all rows, against the Gaussian that has been found so far."""
        nearer = replace(
            self,
            noise=of_possible_spread(augmented).normalised(self.noise_scale),
            points=self.new_points(),
        )
        return nearer.subsample(self.sample.owner)

    def is_noise_near(self, sample: GaussianSample, augmented: Tensor) -> bool:
        """Return whether data rows are taken for noise about as often as the best noise has them.

        Noise that was spread out on purpose is as near as it was meant to be.
        """
        taken_for_noise = float(sample.wrong_probability(augmented).mean())
        best = self.noise_ratio / (1 + self.noise_ratio)
        return self.noise_scale != 1 or taken_for_noise > _NEAR * best

    def inverse_k0(self, *, has_linear: bool) -> Tensor:
        """Return ones (d,): independent columns of variance 1 have a K of 1."""
        return torch.ones_like(self.scale)

    def interaction_units(self, augmented: Tensor, *, has_linear: bool) -> Tensor:
        """Return 1 / K_ii (d,), for partial correlations: K of correlated columns may be large."""
        return 1 / augmented.diagonal()[:-1]

    def start(self, *, has_linear: bool, is_near_data: bool = False) -> Tensor:
        """Return A of independent columns."""
        return _independent(self.scale).normalised().augmented()

    def cycles(self, start: Tensor, progress: Progress) -> GaussianCycles:
        """Return Newton's method that is to go on from `start`."""
        return GaussianCycles(start, progress)

    def model(self, augmented: Tensor) -> QuadraticModel:
        """Return the density of the table's rows, mean + scale * x if x has the scaled one."""
        scaled = QuadraticModel.from_augmented(augmented.cpu())
        return scaled.with_columns_scaled(self.scale.cpu()).with_columns_moved(self.mean.cpu())


def _sample(
    scaled: Observations,
    rows: Tensor,
    pattern: Tensor,
    patterns: Tensor,
    noise: QuadraticModel,
    noise_ratio: int,
    points: Callable[[int], Tensor],
) -> GaussianSample:
    uniforms = points(noise_ratio * len(rows))
    factor = torch.linalg.cholesky(noise.precision)
    standard = torch.special.ndtri(uniforms).mT
    drawn = noise.mean().unsqueeze(1) + torch.linalg.solve_triangular(
        factor.mT, standard, upper=True
    )
    drawn = drawn.mT.view(noise_ratio, len(rows), -1).transpose(0, 1)
    observed = scaled.observed[rows].unsqueeze(1)
    values = torch.cat([scaled.values[rows].unsqueeze(1), drawn * observed], dim=1)
    own = pattern[rows]
    log_noise = log_density(noise.augmented(), values, own, patterns)
    return GaussianSample(values, log_noise, rows, own, patterns, float(noise_ratio))


def standardised_columns(observations: Observations) -> tuple[Observations, Tensor, Tensor]:
    """Return the rows with something observed, columns standardised; mean, scale (d,)."""
    kept = observations.of_rows(observations.observed.any(dim=1))
    mean, variance = kept.moments()
    scale = variance.sqrt()
    values = torch.where(kept.observed, kept.values - mean, 0.0) / scale
    return replace(kept, values=values), mean, scale


def _independent(scale: Tensor) -> QuadraticModel:
    """Return independent columns of mean 0 and variance 1, c any number."""
    return QuadraticModel(
        torch.diag(torch.ones_like(scale)), torch.zeros_like(scale), scale.new_zeros(())
    )
