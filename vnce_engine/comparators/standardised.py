"""A table whose columns have mean 0 and variance 1, and the way back to its own units.

Columns that lie far from zero, beside their spread, keep all their digits this way.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.contrastive.gaussian_problem import standardised_columns
from vnce_engine.data.clusters import deal
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel

FloatArray = NDArray[np.float64]

NUM_FOLDS = 3


@dataclass(frozen=True)
class StandardisedTable:
    """Rows (n, d) with something observed, NaN where missing."""

    X: FloatArray
    mean: Tensor
    """(d,): of each column's observed cells, in the units of the table."""
    scale: Tensor
    """(d,): their standard deviation."""
    clusters: Tensor | None
    """int64 (n,): the cluster of each row; None where rows are independent."""

    @classmethod
    def of(cls, observations: Observations) -> "StandardisedTable":
        """Standardise the columns, whose observed values are not all equal."""
        scaled, mean, scale = standardised_columns(observations)
        return cls(scaled.to_array(), mean, scale, scaled.shared_clusters)

    def folds(self, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Return the rows dealt to three folds, those of a cluster to the same one."""
        clusters = None if self.clusters is None else self.clusters.numpy()
        return deal(len(self.X), clusters, NUM_FOLDS, rng)

    def without(self, fold: NDArray[np.intp]) -> "StandardisedTable":
        """Return all other rows; raise `ValueError` if one of their columns is never observed."""
        # Nobody asks again which rows of a fold's fit are dependent.
        training = replace(self, X=np.delete(self.X, fold, axis=0), clusters=None)
        if np.isnan(training.X).all(axis=0).any():
            raise ValueError(
                "`penalty='cv'` needs every column observed in each two thirds of the rows"
            )
        return training

    def log_jacobian(self) -> FloatArray:
        """Return what each row's log density (n,) of its observed cells is in the table's units.

        Less what it is here: a density of values `scale` times as large is so much lower.
        """
        is_observed = ~np.isnan(self.X)
        lost: FloatArray = is_observed @ np.log(self.scale.numpy())
        return -lost

    def mean_in_units(self, mean: Tensor) -> Tensor:
        """Return a mean (d,) in the units of the table."""
        return self.mean + self.scale * mean

    def covariance_in_units(self, covariance: Tensor) -> Tensor:
        """Return a covariance (d, d) in the units of the table."""
        return covariance * torch.outer(self.scale, self.scale)

    def normal_in_units(self, mean: Tensor, precision: Tensor) -> QuadraticModel:
        """Return N(mean, precision⁻¹) as K, h and c in the units of the table."""
        inverse = 1 / self.scale
        precision = precision * torch.outer(inverse, inverse)
        return QuadraticModel.normal(self.mean_in_units(mean), precision)
