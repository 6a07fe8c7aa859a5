"""What all estimators of a network share: reading tables, and presenting a fit's result."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from vnce_engine.data.column_warnings import column_warnings
from vnce_engine.data.columns import (
    refuse_rare_columns,
    refuse_unusable_columns,
    refuse_unusable_values,
)
from vnce_engine.data.observations import MIN_ROWS, Observations
from vnce_engine.data.table_transform import TableTransform
from vnce_engine.data.tables import as_numbers
from vnce_engine.distributions.definiteness import is_positive_definite
from vnce_engine.estimators.choices import OPEN, Choices
from vnce_engine.estimators.column_transforms import (
    ColumnTransforms,
    TransformName,
    chosen_transforms,
    given_transforms,
)
from vnce_engine.estimators.scores import predictive_score
from vnce_engine.inference.advice import Advice, strong_dependence
from vnce_engine.inference.centrality import Centrality
from vnce_engine.inference.diagnostics import uncounted_pairs_warnings
from vnce_engine.inference.edges import ranked_edges
from vnce_engine.inference.imputation import impute
from vnce_engine.inference.interval import Interval
from vnce_engine.inference.log_density import log_densities
from vnce_engine.inference.mean_field import ceiling
from vnce_engine.inference.metrics import partial_correlation, scaled_interaction
from vnce_engine.inference.multiple_imputation import Draw, completed_tables, draw_truncated
from vnce_engine.inference.parameter_draws import NUM_DRAWS
from vnce_engine.inference.predictability import shares_explained, squared_errors
from vnce_engine.inference.result import Edge, EdgeRule, FitResult
from vnce_engine.pipeline import short_fits
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.checks import check_count, check_range, is_whole, shown
from vnce_engine.runtime.progress import OnStep, Progress
from vnce_engine.runtime.reports import FitStatus, FitWarning
from vnce_engine.selection.transform_choice import choose_transform

FloatArray = NDArray[np.float64]
# Draws of the missing cells beside one whose error is asked for: of these the rows are many.
_NUM_COMPLETED = 5
RandomState = int | np.random.Generator | np.random.RandomState | None


# Parameters are fields, declared once and inherited: a subclass with parameters of its own needs
# the same decorator, by which equality, hash and repr stay scikit-learn's.
@dataclass(kw_only=True, eq=False, repr=False)
class NetworkEstimator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A network from a table; subclasses say how it is estimated."""

    # Whether the model's support is all of ℝ in every column, and not [0, ∞).
    _may_be_negative = False

    column_transform: TransformName | Literal["auto"] | Sequence[TransformName] = "none"
    random_state: RandomState = 0
    min_observed: int | None = None
    edge_threshold: float = 0.1
    max_iter: int | None = None

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

    def predictability(self, X: ArrayLike) -> list[Interval | None]:
        """Return R² of each column of X given all the others, with its 95 % interval.

        The share of a column's variance, on the transformed scale, that the fitted model explains
        from all others, in the rows where it is observed; what is missing beside it is drawn. In
        the rows of the fit it is too high by about (1 - R²) d / n, in new ones it is not. None
        where a column does not vary, and of all where K is not positive definite.
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
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
        return shares_explained(transform.forward(table), np.mean(errors, axis=0))

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

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        on_step: OnStep | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Fit to X (n, d), an array or data frame of numbers, NaN where missing.

        Truncated Gaussians are of non-negative numbers. `y` is ignored. `on_step` is called with a
        `FitStep` after every step, or every few hundred milliseconds of work; returning True
        cancels, and `status_` says so. A step's `checkpoint` holds what has been done: store
        `step.checkpoint.dump()`, and come back with `checkpoint=Checkpoint.load(stored)`, of
        `vnce_engine.runtime.checkpoint`. The same table, parameters and int for `random_state` then
        go on from the last estimate, to the same end within `tol`, and within what other draws
        would change where chains are drawn.

        Raises `ValueError` naming the parameter or the columns that do not fit.
        """
        for name in ("min_observed", "max_iter"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_range("edge_threshold", self.edge_threshold, 0, 1)
        self._check_parameters()
        table = self._read(X, reset=True)
        names = self._column_names()
        self._refuse_columns(table, names)
        seed = seed_of(self.random_state)
        choice = self._choose_transforms(table, names, seed, on_step, checkpoint)
        self.transform_evidence_ = list(choice.evidence)
        transform = TableTransform.fit(choice.columns, table, may_be_negative=self._may_be_negative)
        transformed = transform.forward(table)
        self._refuse_columns(transformed, names)
        observations = Observations.from_array(transformed)
        num_rows = int(observations.observed.any(dim=1).sum())
        if num_rows < MIN_ROWS:
            raise ValueError(
                f"X must have at least {MIN_ROWS} rows with an observed value, got {num_rows}"
            )
        refuse_rare_columns(transformed, names, type(self).__name__, self.min_observed)
        warnings = column_warnings(
            transformed,
            names,
            may_be_negative=self._may_be_negative,
            original=table,
        )
        # A fit of a long table has other uses for the memory.
        del table, transformed
        result = self._estimate(observations, seed, choice.progress)
        self._present(result, observations, warnings)
        self._transform = transform
        is_one = len(set(choice.columns)) == 1
        self.column_transform_ = choice.columns[0] if is_one else list(choice.columns)
        return self

    @abstractmethod
    def _estimate(self, observations: Observations, seed: int, progress: Progress) -> FitResult:
        """Fit to the transformed observations."""

    def read(self, X: ArrayLike) -> FloatArray:
        """Return X as a table (n, d), NaN where missing; raise `ValueError` if it does not fit."""
        check_is_fitted(self)
        return self._read(X, reset=False)

    def choices(self) -> Choices:
        """Return what the fit has chosen, or was told to take."""
        check_is_fitted(self)
        return Choices(
            linear=self.linear_choice_,
            penalty=self.penalty_,
            penalty_kind=None if self.penalty_kind_ is None else str(self.penalty_kind_),
            relaxation=self.penalty_relaxation_,
            graph_strength=next(
                (step.strength for step in self.penalty_path_ if step.chosen), None
            ),
            converged=self.converged_,
            column_transform=self.column_transform_,
        )

    def with_choices(self, choices: Choices) -> Self:
        """Return it unfitted, with these choices wherever its parameters leave one open."""
        held: Self = clone(self)
        parameters = held.get_params()
        chosen = {
            "linear": choices.linear,
            "penalty": choices.penalty,
            "penalty_kind": choices.penalty_kind,
            "column_transform": choices.column_transform,
        }
        # By their text, as one may be an array.
        left_open = [name for name in chosen if str(parameters.get(name)) in OPEN]
        held.set_params(**{name: chosen[name] for name in left_open if chosen[name] is not None})
        return held

    def _read(self, X: ArrayLike, *, reset: bool) -> FloatArray:
        """Return X as a table (n, d), NaN where missing."""
        try:
            table: FloatArray = check_array(
                as_numbers(X, type(self).__name__),
                estimator=self,
                input_name="X",
                dtype=np.float64,
                ensure_all_finite=False,
                ensure_min_features=2 if reset else 1,
                ensure_min_samples=MIN_ROWS if reset else 1,
            )
        except OverflowError as error:  # of whole numbers of hundreds of digits
            raise ValueError(f"X must hold floating-point numbers: {error}") from error
        # For the names of X's columns, and their number.
        validate_data(self, X, reset=reset, skip_check_array=True)
        if not reset:
            refuse_unusable_values(
                table,
                self._column_names(),
                type(self).__name__,
                may_be_negative=self._may_be_negative,
            )
        return table

    def _refuse_columns(self, table: FloatArray, names: list[str]) -> None:
        refuse_unusable_columns(
            table, names, type(self).__name__, may_be_negative=self._may_be_negative
        )

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            return [str(name) for name in names]
        return [f"column {position}" for position in range(self.n_features_in_)]

    def _choose_transforms(
        self,
        table: FloatArray,
        names: list[str],
        seed: int,
        on_step: OnStep | None,
        checkpoint: Checkpoint | None,
    ) -> ColumnTransforms:
        """Return the transforms that were asked for, or chosen."""
        given = given_transforms(self.column_transform, len(names))
        if given is not None:
            return ColumnTransforms(given, Progress(on_step, checkpoint))
        choose = partial(
            choose_transform,
            table,
            names,
            self._judge,
            may_be_negative=self._may_be_negative,
            seed=seed,
        )
        return chosen_transforms(choose, len(names), on_step, checkpoint)

    def _judge(self, Y: FloatArray, others: FloatArray, progress: Progress) -> FloatArray:
        """Return the log density (m,) of other transformed rows (m, d) by a fit to Y (n, d)."""
        return short_fits.log_densities_of_others(Y, others, progress)

    def _choices(self) -> tuple[str, dict[str, object]]:
        """Return what decides a fit beside the table and the seed: the method, its parameters."""
        parameters = self.get_params()
        del parameters["random_state"]
        return type(self).__name__, parameters

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise `ValueError` naming the first parameter that has a value it cannot have."""

    def _present(
        self, result: FitResult, observations: Observations, warnings: Sequence[FitWarning]
    ) -> None:
        self._result = result
        self._ceiling = ceiling(observations)
        self.precision_ = result.model.precision.numpy()
        self.linear_ = result.model.linear.numpy()
        log_partition = float(result.model.log_partition)
        self.log_partition_ = log_partition if math.isfinite(log_partition) else None
        self.scaled_interaction_ = scaled_interaction(self.precision_)
        self.partial_correlation_ = partial_correlation(
            self.scaled_interaction_,
            is_positive_definite=result.diagnostics.is_positive_definite,
        )
        self.edges_: list[Edge] = ranked_edges(
            self.precision_,
            observations.num_pairwise().numpy(),
            self.edge_threshold,
            None if result.stability is None else result.stability.inclusion,
            is_positive_definite=result.diagnostics.is_positive_definite,
        )
        self.edge_rule_ = EdgeRule.THRESHOLD
        self.centrality_: list[Centrality] | None = None
        self.no_uncertainty_ = result.no_uncertainty
        self.has_model_draws_ = bool(result.model_draws)
        self.penalty_ = result.penalty
        self.penalty_path_ = list(result.penalty_path)
        self.selection_ = result.selection
        self.penalty_kind_ = result.penalty_kind
        self.penalty_relaxation_ = result.penalty_relaxation
        self.stability_ = result.stability
        self.linear_choice_ = result.linear_choice
        self.linear_evidence_ = result.linear_evidence
        self.objective_path_ = list(result.objective_path)
        self.objective_name_ = result.objective_name
        self.noise_starts_ = list(result.noise_starts)
        self.column_change_ = result.column_change
        self.status_ = result.status
        self.converged_ = result.status is FitStatus.CONVERGED
        self.n_iter_ = result.num_iterations
        self.diagnostics_ = result.diagnostics
        found = [
            *result.warnings,
            *uncounted_pairs_warnings(result.stability, self._column_names()),
            *warnings,
        ]
        advice = self._advice(result, observations, found)
        self.message_ = advice.message()
        self.warnings_ = [advice.warning(warning) for warning in found]

    def _advice(
        self, result: FitResult, observations: Observations, warnings: Sequence[FitWarning]
    ) -> Advice:
        return Advice(
            result=result,
            estimator=type(self).__name__,
            options=self.get_params(),
            dependence=strong_dependence(
                self.precision_,
                observations,
                self._column_names(),
                has_linear=result.linear_choice != "zero",
            ),
            may_be_transformed=bool((observations.values >= 0).all()),
            codes=frozenset(warning.code for warning in warnings),
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = not self._may_be_negative
        return tags


def seed_of(random_state: RandomState) -> int:
    """Return a seed for the engine; an int gives the same seed always, None a new one."""
    match random_state:
        case np.random.RandomState():
            return int(random_state.randint(2**31 - 1))
        case np.random.Generator():
            return int(random_state.integers(2**63 - 1))
        case None:
            return int(np.random.default_rng().integers(2**63 - 1))
        case _:
            if not is_whole(random_state) or random_state < 0:
                raise ValueError(
                    "`random_state` must be None, a whole number of at least 0, a RandomState or "
                    f"a Generator, got {shown(random_state)}"
                )
            # Hashed, so that neighbouring seeds give unrelated streams.
            words = np.random.SeedSequence(int(random_state)).generate_state(1, np.uint64)
            return int(words[0] >> 1)
