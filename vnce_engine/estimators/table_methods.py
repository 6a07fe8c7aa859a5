"""What a fitted network does with tables: fill their cells, say how well it describes them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from vnce_engine.data.clusters import cluster_codes
from vnce_engine.data.observations import Observations
from vnce_engine.data.table_transform import TableTransform
from vnce_engine.distributions.definiteness import is_positive_definite
from vnce_engine.estimators.scores import predictive_score
from vnce_engine.estimators.seeds import RandomState, seed_of
from vnce_engine.inference.imputation import impute
from vnce_engine.inference.interval import Interval
from vnce_engine.inference.log_density import log_densities
from vnce_engine.inference.multiple_imputation import Draw, completed_tables, draw_truncated
from vnce_engine.inference.parameter_draws import NUM_DRAWS
from vnce_engine.inference.predictability import shares_explained, squared_errors
from vnce_engine.inference.result import FitResult
from vnce_engine.runtime.checks import check_count

FloatArray = NDArray[np.float64]
# Draws of the missing cells beside one whose error is asked for: of these the rows are many.
_NUM_COMPLETED = 5


class TableMethods(TransformerMixin, ABC):
    """The methods of a fitted network; where nothing else is said, its model is truncated."""

    # Whether the model's support is all of ℝ in every column, and not [0, ∞).
    _may_be_negative = False

    # What a fit leaves.
    _result: FitResult
    _ceiling: Tensor
    _transform: TableTransform

    @abstractmethod
    def _read(self, X: ArrayLike, *, reset: bool) -> FloatArray:
        """Return X as a table (n, d), NaN where missing."""

    def impute(self, X: ArrayLike) -> FloatArray:
        """Return X with its missing cells filled by the fitted model, on X's own scale.

        A cell gets its mean under the model given the observed cells of its row: exact where one
        is missing, right to a few hundredths of its spread where more are (by 128 draws, the same
        at every call). If K is not positive definite, means are those of a mean-field
        approximation. Rows with nothing observed are filled too; observed cells stay the same to
        the last bit.
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
        return impute(self._result.model, table, self._transform, self._ceiling)

    def impute_multiple(
        self, X: ArrayLike, m: int = 20, *, random_state: RandomState = 0
    ) -> FloatArray:
        """Return X completed m times, (m, n, d), by draws of its missing cells, on X's own scale.

        The draws of a row are those of the model given its observed cells. Each table has
        parameters of its own, as uncertain as the fitted table leaves them, so that what is
        estimated from each can be pooled by Rubin's rules. Where their uncertainty is not known
        (`has_model_draws_` is False) all tables have those of the fit, and differ too little. The
        same int for `random_state` gives the same tables, and a row the same draws wherever in X it
        stands; observed cells stay the same to the last bit.

        Raises `ValueError` if m is not from 1 to 100, or K not positive definite.
        """
        return np.stack(list(self.iterate_imputations(X, m, random_state=random_state)))

    def iterate_imputations(
        self, X: ArrayLike, m: int = 20, *, random_state: RandomState = 0
    ) -> Iterator[FloatArray]:
        """Return the tables (n, d) of `impute_multiple` in turn, one in memory at a time."""
        check_is_fitted(self)
        check_count("m", m, most=NUM_DRAWS)
        table = self._read(X, reset=False)
        if not self._result.diagnostics.is_positive_definite:
            raise ValueError(
                "`impute_multiple` needs a positive definite K: of an indefinite one missing cells "
                "need not have a distribution"
            )
        generator = torch.Generator().manual_seed(seed_of(random_state))
        draws = self._result.model_draws
        taken = torch.randperm(len(draws), generator=generator)[:m].tolist()
        models = [draws[i] for i in taken] if draws else [self._result.model] * m
        return completed_tables(models, table, self._transform, self._draw(), generator)

    def _draw(self) -> Draw:
        """Return how the model's missing cells are drawn."""
        return draw_truncated

    def predictability(
        self, X: ArrayLike, clusters: ArrayLike | None = None
    ) -> list[Interval | None]:
        """Return R² of each column of X given all the others, with its 95 % interval.

        `clusters` (n,) has a label of each row, as of `fit`, where rows are dependent.
        The share of a column's variance, on the transformed scale, that the fitted model explains
        from all others, in the rows where it is observed; what is missing beside it is drawn. In
        the rows of the fit it is too high by about (1 - R²) d / n, in new ones it is not. None
        where a column does not vary, and of all where K is not positive definite.
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
        codes = None if clusters is None else cluster_codes(clusters, len(table))
        if not self._result.diagnostics.is_positive_definite:
            return [None] * table.shape[1]
        model, transform = self._result.model, self._transform
        completed: Iterable[FloatArray] = [table]
        if np.isnan(table).any():
            models, generator = [model] * _NUM_COMPLETED, torch.Generator().manual_seed(0)
            completed = completed_tables(models, table, transform, self._draw(), generator)
        errors = [
            squared_errors(
                model,
                torch.from_numpy(transform.forward(each)),
                is_truncated=not self._may_be_negative,
            ).numpy()
            for each in completed
        ]
        return shares_explained(transform.forward(table), np.mean(errors, axis=0), codes)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return what `impute` does: in a pipeline the estimator fills its table's missing cells.

        The columns keep their names, see `get_feature_names_out`.
        """
        return self.impute(X)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return how well each observed cell is predicted from the others of its row, in nats.

        The mean over X's observed cells of their log density given the other observed cells of
        their row, under the fitted model: higher is better, and searches such as `GridSearchCV`
        use it. In complete rows it is the log pseudo-likelihood over d; what is missing beside a
        cell is integrated out by mean-field. c plays no part. On the scale of the transformed
        columns: fits with another `column_transform` are not to be compared by it. `y` is ignored.
        """
        check_is_fitted(self)
        table = self._transformed(X)
        return predictive_score(self._result.model, table, self._ceiling)

    @overload
    def score_samples(
        self, X: ArrayLike, *, return_error: Literal[False] = False
    ) -> FloatArray: ...

    @overload
    def score_samples(
        self, X: ArrayLike, *, return_error: Literal[True]
    ) -> tuple[FloatArray, FloatArray]: ...

    def score_samples(
        self, X: ArrayLike, *, return_error: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return the log density (n,) of the observed cells of each row of X, in nats.

        In X's own units, whatever the transform, so that fits with different ones can be compared
        on rows that none of them has seen. Missing cells are integrated out, and the density
        integrates to 1 over the observed ones: K and h decide it, and c, which is an estimate of
        its constant, plays no part. With `return_error` the Monte-Carlo standard error (n,) of each
        is returned, too; it is at most that of the constant in rows that miss one cell or none, and
        0 of Gaussians. The same at every call. A row with nothing observed has 0, the log density
        of no observation; a cell of 0 under "sqrt" or "cbrt" has an infinite density.

        Raises `ValueError` if K is not positive definite.
        """
        check_is_fitted(self)
        log_density, error = self.log_densities(self._read(X, reset=False))
        return (log_density, error) if return_error else log_density

    def log_densities(
        self, table: FloatArray, least: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return what `score_samples` does of rows (m, d) that were read, and the errors (m,).

        With `least` (d,), the least positive value of each column, cells of 0 have finite
        densities: they stand for the values up to half of it.
        """
        if not is_positive_definite(self._result.model.precision):
            raise ValueError(
                f"`score_samples` needs a positive definite `precision_`, which this "
                f"{type(self).__name__} has not: its density may not integrate to anything finite"
            )
        log_density, error = self._log_densities_of(self._transform.forward(table))
        return log_density + np.nansum(self._transform.log_slope(table, least), axis=1), error

    def _log_densities_of(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) of transformed rows Y (n, d), and their standard errors."""
        generator = torch.Generator().manual_seed(0)
        found = log_densities(self._result.model, Observations.from_array(Y), generator)
        return found[0].numpy(), found[1].numpy()

    def _transformed(self, X: ArrayLike) -> FloatArray:
        """Return X (n, d) after the fit's transform; raise `ValueError` if nothing is observed."""
        table = self._read(X, reset=False)
        if np.isnan(table).all():
            raise ValueError(f"No observed value in data passed to X in {type(self).__name__}")
        return self._transform.forward(table)
