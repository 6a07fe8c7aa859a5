"""What fitted Gaussians on all of R^d do with a table, exactly."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from vnce_engine.comparators import shrunken_em
from vnce_engine.comparators.gaussian_em import observed_log_likelihoods
from vnce_engine.estimators.base import NetworkEstimator
from vnce_engine.estimators.scores import likelihood_score
from vnce_engine.inference.gaussian_imputation import impute_normal
from vnce_engine.inference.multiple_imputation import Draw, draw_normal
from vnce_engine.runtime.progress import Progress

FloatArray = NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianDensity(NetworkEstimator):
    """A network whose model is a Gaussian: cells may be negative, and are imputed exactly."""

    _may_be_negative = True

    def impute(self, X: ArrayLike) -> FloatArray:
        """Return X with its missing cells at their mean given the observed ones of their row.

        On X's own scale, where negative values of a transformed column stand for 0; observed cells
        stay the same to the last bit.
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
        return impute_normal(self._mean(), self._result.model.precision, table, self._transform)

    def _draw(self) -> Draw:
        return draw_normal

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log density of the observed cells of X's rows, in nats per row.

        Missing cells are integrated out exactly; rows with nothing observed are left out. Higher is
        better, and searches such as `GridSearchCV` use it. The density is that of the Gaussian
        with the fitted mean and K, its constant exact. On the scale of the transformed columns:
        fits with another `column_transform` are not to be compared by it. `y` is ignored.
        """
        check_is_fitted(self)
        return likelihood_score(self._mean(), self._result.model.precision, self._transformed(X))

    def _log_densities_of(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) of transformed rows Y (n, d), which are exact.

        Of a transform with a bound, the density of the values below it, which stand for it, is not
        that of any X: over the others it integrates to less than 1.
        """
        log_density = observed_log_likelihoods(Y, self._mean(), self._result.model.precision)
        # Where nothing is observed it is 0, but for rounding.
        return np.where(np.isnan(Y).all(axis=1), 0.0, log_density), np.zeros(len(Y))

    def _judge(self, Y: FloatArray, others: FloatArray, progress: Progress) -> FloatArray:
        """Return the log density (m,) of other transformed rows (m, d) by a fit to Y (n, d)."""
        return shrunken_em.log_densities_of_others(Y, others, progress)

    @abstractmethod
    def _mean(self) -> Tensor:
        """Return the mean (d,) of the fitted model."""
