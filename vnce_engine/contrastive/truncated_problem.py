"""A table made ready for fitting: scaled columns, noise, the contrastive sample."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vnce_engine.contrastive.likelihood_rows import LikelihoodRows
from vnce_engine.contrastive.noise import CopulaNoise, ProductTruncatedNormal
from vnce_engine.contrastive.prepared import PreparedTable
from vnce_engine.contrastive.truncated_sample import (
    ContrastiveSample,
    data_blocks,
    noise_blocks,
    noise_points,
)
from vnce_engine.contrastive.variational_em import Cycles
from vnce_engine.data.observations import Observations
from vnce_engine.distributions import truncated_normal
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.runtime.progress import Progress

# Draws of each missing cell of a data row while much is still to change, and in the last cycles,
# where their spread is left in the estimates; a noise row has one.
NUM_DRAWS = 4
FINAL_NUM_DRAWS = 12
# The noise ratio grows by this factor for the last cycles, when the estimates hardly move.
FINAL_NOISE_FACTOR = 3
# But not beyond so many rows or draws of each class: they are held in memory, and what more noise
# would take from the estimates' variance, 1 / (3 nu) of it instead of 1 / nu, is little.
_MOST_ROWS = 600_000
# Factors on the spread of the noise. At either end noise and data hardly overlap, and a result says
# so; far beyond it nothing is left of the objective but rounding.
NOISE_SCALES = (1e-3, 1e3)


@dataclass(frozen=True)
class Problem(PreparedTable[ContrastiveSample]):
    """A non-negative table, columns scaled to mean square 1, against truncated normals."""

    marginals: ProductTruncatedNormal
    """Truncated normals with the mean and variance of each column."""
    noise: CopulaNoise
    """These, wider or narrower by the noise scale, joined by a copula."""
    points: Callable[[int], Tensor]
    """Source of uniforms for further noise; `sample` has taken the first of them."""

    @classmethod
    def prepare(
        cls,
        observations: Observations,
        noise_ratio: int,
        noise_draws: str,
        generator: torch.Generator,
        noise_scale: float = 1.0,
    ) -> "Problem":
        """Scale the columns, fit the noise and draw it.

        `noise_scale` widens the fitted noise, or narrows it below 1.
        """
        scaled, scale = scaled_columns(observations)
        marginals = ProductTruncatedNormal.fit(scaled)
        noise = replace(
            CopulaNoise.fit(marginals, scaled), marginals=marginals.widened(noise_scale)
        )
        points = noise_points(scaled.num_columns, noise_draws, generator, scale.device)
        rows = torch.arange(scaled.num_rows, device=scale.device)
        sample = _sample(scaled, rows, noise, noise_ratio, points, generator)
        return cls(scaled, scale, sample, generator, marginals, noise, points)

    def final_sample(self, augmented: Tensor) -> ContrastiveSample:
        """Return all rows with more noise of the same kind."""
        return self.thickened_sample()

    def thickened_sample(self) -> ContrastiveSample:
        """Return all rows, with more draws and up to `FINAL_NOISE_FACTOR` times as much noise."""
        sample = self.sample
        rows = torch.arange(self.num_rows, device=self.scale.device)
        data, noise = sample.data, sample.noise
        num_draws = min(FINAL_NUM_DRAWS, _MOST_ROWS // self.num_rows)
        if num_draws > sample.num_draws > 1:
            data = tuple(
                data_blocks(self.observations, rows, self.noise, num_draws, self.generator)
            )
        most = _MOST_ROWS // self.num_rows - round(sample.nu)
        repeats = min(round((FINAL_NOISE_FACTOR - 1) * sample.nu), most)
        if repeats > 0:
            more = noise_blocks(self.observations, rows, repeats, self.noise, self.points)
            noise = (*noise, *more)
        return ContrastiveSample.of(data, noise)

    def scored_rows(self, sample: ContrastiveSample, progress: Progress) -> LikelihoodRows:
        """Return the rows' likelihood, against which NCE falls short under strong dependence."""
        # The same rows whether or not the fit was interrupted: not where its generator has come to.
        generator = torch.Generator().manual_seed(self.generator.initial_seed() + 1)
        return LikelihoodRows(sample, self.observations, generator, progress)

    def subsample(self, rows: Tensor) -> ContrastiveSample:
        """Return the given rows alone, int64 (r,), against new noise as much as `sample` has."""
        return self._sample_of(self.observations, rows)

    def _sample_of(self, observations: Observations, rows: Tensor) -> ContrastiveSample:
        noise_ratio = round(self.sample.nu)
        return _sample(observations, rows, self.noise, noise_ratio, self.points, self.generator)

    def with_at_most(self, num_rows: int) -> "Problem":
        """Return the problem of so many rows, drawn at random, in their order and units."""
        if self.num_rows <= num_rows:
            return self
        drawn = torch.randperm(self.num_rows, generator=self.generator)[:num_rows]
        rows = drawn.sort().values.to(self.scale.device)
        part = self.observations.of_rows(rows)
        rows = torch.arange(num_rows, device=self.scale.device)
        return replace(self, observations=part, sample=self._sample_of(part, rows))

    def inverse_k0(self, *, has_linear: bool) -> Tensor:
        """Return 1 / k0 (d,): mean(x²), or var(x) where a linear term accounts for the mean."""
        return inverse_k0(self.observations, has_linear=has_linear)

    def start(self, *, has_linear: bool, is_near_data: bool = False) -> Tensor:
        """Return A of independent columns, about the marginals where h is free.

        There it may be near the data, of the marginals' means and variances and their correlations.
        """
        constraints = self.constraints(has_linear=has_linear)
        if has_linear and is_near_data:
            joined = replace(self.noise, marginals=self.marginals)
            return constraints.project(joined.model_of_its_moments().augmented())
        if has_linear:
            mu, sigma = self.marginals.mu, self.marginals.sigma
        else:
            # The half-normal with the mean square of each column.
            mu, sigma = torch.zeros_like(self.scale), torch.ones_like(self.scale)
        precision = sigma**-2
        log_partition = truncated_normal.log_integral(mu, sigma).sum()
        model = QuadraticModel(torch.diag(precision), mu * precision, log_partition)
        return constraints.project(model.augmented())

    def cycles(self, start: Tensor, progress: Progress) -> Cycles:
        """Return variational EM that is to go on from `start`."""
        return Cycles(start, progress)

    def model(self, augmented: Tensor) -> QuadraticModel:
        """Return the estimate in the units of the table that was given."""
        scaled = QuadraticModel.from_augmented(augmented.cpu())
        return scaled.with_columns_scaled(self.scale.cpu())


def _sample(
    observations: Observations,
    rows: Tensor,
    noise: CopulaNoise,
    noise_ratio: int,
    points: Callable[[int], Tensor],
    generator: torch.Generator,
) -> ContrastiveSample:
    return ContrastiveSample.of(
        data_blocks(observations, rows, noise, NUM_DRAWS, generator),
        noise_blocks(observations, rows, noise_ratio, noise, points),
    )


def scaled_columns(observations: Observations) -> tuple[Observations, Tensor]:
    """Return the rows with something observed, columns at mean square 1, and the scale (d,)."""
    kept = observations.of_rows(observations.observed.any(dim=1))
    # The root of an integer would be a number of single precision.
    counts = kept.counts().to(kept.values.dtype)
    scale = torch.linalg.vector_norm(kept.values, dim=0) / counts.sqrt()
    return replace(kept, values=kept.values.div_(scale)), scale


def inverse_k0(scaled: Observations, *, has_linear: bool) -> Tensor:
    """Return 1 / k0 (d,) of `scaled_columns`: mean(x²), or var(x) where h accounts for the mean."""
    return scaled.moments()[1] if has_linear else scaled.values.new_ones(scaled.num_columns)
