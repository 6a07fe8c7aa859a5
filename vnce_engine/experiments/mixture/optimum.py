"""Where the kept start has ended: its uncertainty, its noise, and what must be said of it.

In units of sigma_1, as everything between `fit_mixture`'s door and its answer.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.black_box.overlap import Overlap, noise_overlap
from vnce_engine.contrastive.objective import DATA, NOISE, log_probability
from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.methods import (
    normalised_density,
    unnormalised_density,
)
from vnce_engine.experiments.mixture.model import (
    KNOWN_SIGMA,
    log_noise,
    log_posterior,
    true_log_partition,
)
from vnce_engine.experiments.mixture.objectives import Density
from vnce_engine.experiments.mixture.options import Estimator, Form, MixtureOptions
from vnce_engine.experiments.mixture.uncertainty import Neighbourhood, PluggedIn, neighbourhood
from vnce_engine.runtime.reports import FitStatus, FitWarning

# A fit has converged when Newton's method would move no parameter by more standard errors.
CONVERGED_STEP = 0.01
# Standard errors of the mean that it must be from the model's zero before the result says so.
_FAR_FROM_ZERO = 4.0
# With fewer values of the component whose standard deviation it is, theta means nothing.
_LEAST_VALUES = 1.0

_STOPPED = (
    "The best start stopped {step:.2g} standard errors before its maximum. Raise `max_iter`, or "
    "try more starts."
)
_NO_MAXIMUM = (
    "Where the best start ended the objective has no maximum: it still rises as theta grows or "
    "shrinks, or hardly depends on it. The data do not look like this mixture, or are too few."
)
_NON_FINITE = (
    "The objective was infinite or undefined from every start: the values are too large beside "
    "`sigma_1`."
)
DENSITIES: dict[Form, Density] = {
    Form.NORMALISED: normalised_density,
    Form.UNNORMALISED: unnormalised_density,
}


@dataclass(frozen=True)
class Optimum:
    """An estimate of one sample."""

    parameters: Tensor
    """The model's own: log theta and, unnormalised, c."""
    options: MixtureOptions
    data: MixtureData

    @property
    def is_finite(self) -> bool:
        """Whether there is an estimate at all."""
        return bool(self.parameters.isfinite().all() and self.theta > 0)

    @property
    def theta(self) -> float:
        """The standard deviation that was unknown."""
        return float(self.parameters[0].exp())

    @property
    def known_weight(self) -> float:
        """Weight of the component of known standard deviation."""
        if self.options.form is Form.NORMALISED:
            return 0.5
        return KNOWN_SIGMA / (KNOWN_SIGMA + self.theta)

    def responsibilities(self) -> NDArray[np.float64]:
        """Return the probability (n,) of each value to be of the known component."""
        density = DENSITIES[self.options.form]
        posterior: NDArray[np.float64] = (
            log_posterior(density(self.parameters.unsqueeze(0), self.data.x))[1, 0].exp().numpy()
        )
        return posterior

    def neighbourhood(self) -> Neighbourhood:
        """Return slope and curvature of the objective, q at the posterior, in its parameters.

        Those are log theta alone under maximum likelihood, where c follows from it.
        """
        if self.options.estimator is Estimator.MLE:
            near = neighbourhood([self._log_likelihood], self.parameters[:1])
        else:
            near = neighbourhood(
                [self._of_data, self._of_noise], self.parameters, self._noise_scale()
            )
        if (1 - self.responsibilities()).sum() < _LEAST_VALUES:
            # theta has shrunk to nothing, where rounding decides about the curvature.
            return replace(near, standard_errors=None, largest_step=None)
        return near

    def overlap(self) -> Overlap | None:
        """Return how well noise is told from data; None without noise."""
        if self.options.estimator is Estimator.MLE:
            return None
        of_data, of_noise = (
            self._log_ratio(self.parameters, u, self.data.noise_scale)
            for u in (self.data.x, self.data.y)
        )
        return noise_overlap(of_data, of_noise, self.data.nu)

    def _log_marginal(self, parameters: Tensor, u: Tensor) -> Tensor:
        density = DENSITIES[self.options.form]
        return density(parameters.unsqueeze(0), u).logsumexp(dim=0)

    def _log_ratio(self, parameters: Tensor, u: Tensor, noise_scale: Tensor) -> Tensor:
        return self._log_marginal(parameters, u) - log_noise(noise_scale, u)

    def _noise_scale(self) -> PluggedIn:
        """Return the log of the noise's scale, a multiple of the data's root mean square.

        Under the right model theta does not depend on it; under a wrong one its best value does.
        """
        square = (self.data.x[0] / self.data.x.abs().max()).square()  # which alone might overflow
        return PluggedIn(self.data.noise_scale.log()[0], 0.5 * (square / square.mean() - 1))

    def _of_data(self, at: Tensor) -> Tensor:
        """Return the rows of the data's term; `at` (p + 1,) ends with the log of noise's scale."""
        log_ratio = self._log_ratio(at[:-1], self.data.x, at[-1:].exp())[0]
        return log_probability(log_ratio, self.data.nu, DATA)

    def _of_noise(self, at: Tensor) -> Tensor:
        """Return the rows of the noise's term, whose values are as wide as its scale says."""
        scale = at[-1:].exp()
        y = self.data.y / self.data.noise_scale * scale
        log_ratio = self._log_ratio(at[:-1], y, scale)[0]
        return self.data.nu * log_probability(log_ratio, self.data.nu, NOISE)

    def _log_likelihood(self, parameters: Tensor) -> Tensor:
        if self.options.form is Form.UNNORMALISED:
            c = true_log_partition(parameters.exp())
            parameters = torch.cat([parameters, c])
        return self._log_marginal(parameters, self.data.x)[0]


def ending(near: Neighbourhood | None, num_best: int, num_starts: int) -> tuple[FitStatus, str]:
    """Return how a fit ended and what to try; `near` is None where there is no estimate."""
    if near is None:
        return FitStatus.NON_FINITE, _NON_FINITE
    if near.largest_step is None:
        return FitStatus.MAX_ITERATIONS, _NO_MAXIMUM
    if near.largest_step > CONVERGED_STEP:
        return FitStatus.MAX_ITERATIONS, _STOPPED.format(step=near.largest_step)
    return FitStatus.CONVERGED, (
        f"{num_best} of {num_starts} starts reached the best optimum; Newton's method would move "
        f"no estimate by more than {CONVERGED_STEP:g} of its standard error."
    )


def warnings_about(
    sample: NDArray[np.float64], overlap: Overlap | None, num_best: int, num_starts: int
) -> tuple[FitWarning, ...]:
    """Return what a reader of the estimate must know."""
    found = []
    unit = np.abs(sample).max()  # whose square might overflow
    mean, sd = float((sample / unit).mean()), float((sample / unit).std(ddof=1))
    distance = abs(mean) / sd * math.sqrt(len(sample))
    if distance > _FAR_FROM_ZERO:
        found.append(
            FitWarning(
                "not-centred",
                f"The mean is {unit * mean:.4g}, {distance:.1f} standard errors from zero, where "
                "both components have theirs: theta takes up the difference. Subtract the mean if "
                "it means nothing.",
            )
        )
    if num_best == 1 < num_starts:
        found.append(
            FitWarning(
                "starts-disagree",
                f"One of {num_starts} starts reached the best optimum, the others ended lower: "
                "there may be a better one still. Try more starts.",
            )
        )
    found += [FitWarning("noise-overlap", text) for text in (overlap.advice if overlap else ())]
    return tuple(found)
