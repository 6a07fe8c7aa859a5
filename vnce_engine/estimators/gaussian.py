"""Gaussian networks of tables on all of R^d, by scikit-learn's conventions."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from vnce_engine.comparators.filling import Imputation, fit_filled
from vnce_engine.data.observations import Observations
from vnce_engine.estimators.contrastive import ContrastiveEstimator
from vnce_engine.estimators.gaussian_density import GaussianDensity
from vnce_engine.inference.result import FitResult
from vnce_engine.pipeline.model_fits import fit_gaussian
from vnce_engine.runtime.checks import check_choice
from vnce_engine.runtime.progress import Progress

_FILLINGS = (Imputation.MEAN, Imputation.ZERO, Imputation.DROP)


@dataclass(kw_only=True, eq=False, repr=False)
class _GaussianEstimator(GaussianDensity, ContrastiveEstimator):
    """A Gaussian network, fitted by telling data from Gaussian noise."""

    def _mean(self) -> Tensor:
        """Return K⁻¹ h (d,)."""
        return self._result.model.mean()


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianVNCE(_GaussianEstimator):
    """Gaussian network from an incomplete table, by variational NCE with the exact posterior.

    The model of a (transformed) row x is exp(-½ xᵀKx + hᵀx - c) on all of R^d, c estimated. The
    posterior of the missing cells is normal and is q, so that the bound is tight; the estimates
    tend to maximum likelihood as `noise_ratio` grows. Noise is Gaussian, and carries the
    missingness of the data rows.

    Parameters
    ----------
    column_transform : str or sequence of str
        As it is for `TruncatedGaussianVNCE`, "rank-normal" to quantiles of a whole normal. All but
        it and "none" need non-negative values.
    penalty : "auto", float or None
        Strength of a penalty on interactions, as it is for 1000 rows: "auto" chooses it by
        `selection`, None switches it off, which needs more rows than parameters and tends to
        maximum likelihood.
    penalty_kind : "auto", "adaptive", "ridge", "centred-ridge" or "l1"
    penalties : sequence of float or None
    selection : "held-out", "ebic" or "stability"
    ebic_gamma : float
    n_subsamples : int
    inclusion_threshold : float
    max_false_edges : float
    fdr : float
    fdr_method : "benjamini-hochberg" or "benjamini-yekutieli"
        All as they are for `TruncatedGaussianVNCE`.
    noise_ratio : int
        Noise rows a data row, nu. Short tables have more, 6,000 in all.
    noise_scale : float
        Factor, from 0.001 to 1000, on the standard deviations of the noise, which otherwise
        resembles the data.
    noise_draws : "sobol" or "random"
        Evenly spread or independent noise.
    random_state : int, Generator, RandomState or None
        Seed of the noise; the same int, 0 unless given, gives the same result. None draws one.
    max_iter : int or None
        Newton steps of the final fit at most: 100 if None.
    tol : float
        Largest step in K and h, columns scaled to K_ii = 1, at which the fit has converged.
    min_observed : int or None
        As it is for `TruncatedGaussianVNCE`.
    edge_threshold : float
        |partial correlation| from which an edge matters: one whose interval lies within this has
        the verdict that it is absent. Where edges have no intervals, and of a graph by "ebic" or
        "stability", the pairs that reach it are `selected`; elsewhere those found present are.
    device : "auto", "cpu" or "cuda"
        Where the fit works: "auto" is CUDA where there is a device. The same numbers are drawn
        everywhere, and results agree to 1e-6; the CPU is the default so that they agree to the bit.

    Attributes are those of `TruncatedGaussianVNCE`; K is the inverse covariance here.
    Source: Rhodes and Gutmann (2019), Theorem 1, on a model whose posterior is known.
    """

    def _estimate(self, observations: Observations, seed: int, progress: Progress) -> FitResult:
        return fit_gaussian(observations, self._options(), seed, progress)


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianNCE(_GaussianEstimator):
    """Gaussian network by plain NCE, missing cells filled or dropped beforehand.

    A comparator: filled cells bias the estimates more the more there are.

    Parameters
    ----------
    imputation : "mean", "zero" or "drop"
        Fill with the column's observed mean, with zero, or keep only complete rows.

    All other parameters and the attributes are those of `GaussianVNCE`.
    """

    imputation: Literal["mean", "zero", "drop"] = "mean"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("imputation", self.imputation, _FILLINGS)

    def _estimate(self, observations: Observations, seed: int, progress: Progress) -> FitResult:
        return fit_filled(
            observations,
            Imputation(self.imputation),
            seed,
            lambda filled: fit_gaussian(filled, self._options(), seed, progress),
        )
