"""Gaussian network by EM, and the graphical lasso on its covariance."""

import math
from functools import partial
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from vnce_engine.comparators.gaussian_em import GaussianFit, conditional_means, fit_gaussian
from vnce_engine.comparators.graphical_lasso import (
    SparsePrecision,
    choose_by_cross_validation,
    choose_by_ebic,
    graphical_lasso,
)
from vnce_engine.comparators.result import ComparatorFit, ScaledTable, present
from vnce_engine.journal import Journal, name_of_fit
from vnce_engine.network_estimator import (
    NetworkEstimator,
    RandomState,
    check_count,
    check_number,
    check_range,
)
from vnce_engine.observations import Observations
from vnce_engine.penalty import Penalty, PenaltyKind
from vnce_engine.problem import inverse_k0, scaled_columns
from vnce_engine.progress import FitCancelledError, OnStep, Progress
from vnce_engine.result import FitResult, FitStatus, FitWarning
from vnce_engine.transforms import Transform

FloatArray = NDArray[np.float64]

_MAX_ITERATIONS = 500
_MESSAGES = {
    FitStatus.CONVERGED: "An EM iteration gained less than `tol` nats a row.",
    FitStatus.MAX_ITERATIONS: "EM stopped at `max_iter` iterations before the likelihood settled: "
    "see `column_change_` for how far each column's imputed cells still moved. Try a larger "
    "`max_iter` or `tol`, or leave out columns that are nearly functions of others.",
    FitStatus.NON_FINITE: "The likelihood became infinite or undefined.",
    FitStatus.CANCELLED: "The fit was cancelled; the last finite estimate is returned.",
}
# Share of the whole at which EM ends where a penalty is chosen after it.
_EM_SHARE = 0.5


class GaussianEM(NetworkEstimator):
    """Gaussian network from a table with holes, by maximum likelihood (EM), sparse on request.

    The model of a row, on all of ℝ^d, is N(mu, K⁻¹); missing cells have their exact conditional
    distribution. With a `penalty`, the graphical lasso of the EM covariance, columns scaled to
    variance 1.

    Parameters
    ----------
    transform : "none", "sqrt", "cbrt" or "log1p"
        Applied to observed cells; K is that of the transformed columns. All but "none" need
        non-negative values.
    penalty : None, "ebic", "cv" or float
        None is maximum likelihood; a number the L1 penalty of the graphical lasso, on correlations;
        "ebic" takes the graph of least extended Bayesian information criterion, and "cv" the
        penalty of best likelihood on held-out rows.
    ebic_gamma : float
        Weight, from 0 to 1, of the number of possible graphs in "ebic"; 0 is the BIC.
    max_iter : int or None
        EM iterations at most, 500 if None.
    tol : float
        Gain of an iteration, in nats a row, at which EM has converged.
    random_state : int, Generator, RandomState or None
        Seed that deals rows to the folds of "cv".
    edge_threshold : float
        |partial correlation| from which a pair is shown as an edge.

    Attributes
    ----------
    mean_, covariance_ : ndarray (d,), (d, d)
        Maximum-likelihood estimates; `precision_` is the inverse of the covariance without a
        penalty.
    column_change_ : ndarray (d,)
        How far the mean of each column's imputed cells moved in the last iteration, in units of the
        column's root mean square.

    The others are those of `TruncatedGaussianVNCE`: `linear_` is K mu, `log_partition_` the log of
    the Gaussian integral, and `objective_path_` the log likelihood of the observed cells.
    """

    _may_be_negative = True

    def __init__(
        self,
        *,
        transform: Literal["none", "sqrt", "cbrt", "log1p"] = "none",
        penalty: float | Literal["ebic", "cv"] | None = None,
        ebic_gamma: float = 0.5,
        max_iter: int | None = None,
        tol: float = 1e-7,
        random_state: RandomState = None,
        edge_threshold: float = 0.1,
    ) -> None:
        self.transform = transform
        self.penalty = penalty
        self.ebic_gamma = ebic_gamma
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.edge_threshold = edge_threshold

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        on_step: OnStep | None = None,
        journal: Journal | None = None,
    ) -> Self:
        """Fit to X (n, d), an array or data frame of numbers, NaN where missing.

        `y` is ignored. `on_step` is called with a `FitStep` after every iteration; returning True
        cancels. With the `journal` of an interrupted fit of the same table, parameters and int for
        `random_state` it goes on from there, to the same last bit. Raises `ValueError` naming the
        parameter or the columns that do not fit.
        """
        return self._fit(X, partial(self._estimate, on_step=on_step, journal=journal))

    def impute(self, X: ArrayLike) -> FloatArray:
        """Return X with missing cells at their mean given the observed cells of their row.

        With a transform, at the transform's inverse of that mean. Observed cells stay the same to
        the last bit.
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
        transform = Transform(self.transform_)
        model = self._result.model
        mean = torch.linalg.solve(model.precision, model.linear)
        filled = conditional_means(transform.forward(table), mean, model.precision)
        if transform is not Transform.NONE:
            # A normal may go below the transform's range, where its least value stands.
            filled = transform.inverse(np.maximum(filled, 0))
        return np.where(np.isnan(table), filled, table)

    def _check_parameters(self) -> None:
        if self.penalty is not None and self.penalty not in ("ebic", "cv"):
            rule = "None, 'ebic', 'cv' or a positive number"
            check_number("penalty", self.penalty, rule, 0, math.inf)
        check_range("ebic_gamma", self.ebic_gamma, 0, 1)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, "a positive number", 0, math.inf)
        check_range("edge_threshold", self.edge_threshold, 0, 1)

    def _estimate(
        self,
        observations: Observations,
        seed: int,
        on_step: OnStep | None,
        journal: Journal | None,
    ) -> FitResult:
        progress = Progress(on_step, journal)
        progress.journal.begin_fit(name_of_fit(observations, self._choices(), seed))
        scaled, scale = scaled_columns(observations)
        penalty = Penalty(0.0, PenaltyKind.RIDGE, inverse_k0(scaled, "free"), scaled.num_rows)
        rng = np.random.default_rng(seed)
        table = ScaledTable(scaled.to_array(), True, penalty, rng)
        em = fit_gaussian(
            table.X,
            max_iterations=self._max_iterations(),
            tolerance=self.tol,
            progress=progress,
            span=(0.0, 1.0 if self.penalty is None else _EM_SHARE),
        )
        status, sparse = em.status, SparsePrecision(_inverse(em.covariance), None)
        has_ended = status in (FitStatus.CONVERGED, FitStatus.MAX_ITERATIONS)
        if has_ended and self.penalty is not None:
            try:
                progress.enter("penalty", _EM_SHARE, 1.0)
                sparse = self._sparse(em, table, progress)
            except FitCancelledError:
                status = FitStatus.CANCELLED
            except FloatingPointError:  # scikit-learn's, of a covariance that is all but singular
                status = FitStatus.NON_FINITE
        self.mean_ = (em.mean * scale).numpy()
        self.covariance_ = (em.covariance * torch.outer(scale, scale)).numpy()
        self.column_change_ = em.column_change
        num_missing = int((~observations.observed).sum())
        return present(
            _comparator_fit(em, status, sparse.precision),
            observations,
            scale,
            table,
            message=_MESSAGES[status],
            penalty=sparse.penalty,
            warnings=(_missing_at_random(num_missing),) if num_missing else (),
        )

    def _max_iterations(self) -> int:
        return _MAX_ITERATIONS if self.max_iter is None else self.max_iter

    def _sparse(self, em: GaussianFit, table: ScaledTable, progress: Progress) -> SparsePrecision:
        match self.penalty:
            case "ebic":
                return choose_by_ebic(em, table.X, self.ebic_gamma, progress)
            case "cv":
                return choose_by_cross_validation(
                    em, table.X, table.rng, self._max_iterations(), self.tol, progress
                )
            case strength:
                return graphical_lasso(em.covariance, float(strength or 0.0))


def _inverse(covariance: Tensor) -> Tensor:
    precision = torch.cholesky_inverse(torch.linalg.cholesky(covariance))
    return 0.5 * (precision + precision.mT)


def _comparator_fit(em: GaussianFit, status: FitStatus, precision: Tensor) -> ComparatorFit:
    linear = precision @ em.mean
    log_determinant = float(torch.linalg.slogdet(precision).logabsdet)
    constant = len(linear) * math.log(2 * math.pi)
    return ComparatorFit(
        precision=precision.numpy(),
        linear=linear.numpy(),
        status=status,
        objective_path=em.log_likelihood_path,
        gradient_norm=math.nan,
        message=em.message,
        log_partition=0.5 * (float(linear @ em.mean) + constant - log_determinant),
        column_change=em.column_change,
    )


def _missing_at_random(num_missing: int) -> FitWarning:
    return FitWarning(
        "missing-at-random",
        f"{num_missing} cells are missing: the estimates are valid if cells are missing at random, "
        "which may depend on observed cells of the row but not on missing ones.",
    )
