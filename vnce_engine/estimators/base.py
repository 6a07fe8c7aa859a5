"""What all estimators of a network share: reading tables, and presenting a fit's result."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from vnce_engine.data.clusters import Codes, cluster_codes, refuse_few_clusters
from vnce_engine.data.column_warnings import column_warnings
from vnce_engine.data.columns import (
    refuse_rare_columns,
    refuse_unusable_columns,
    refuse_unusable_values,
)
from vnce_engine.data.observations import MIN_ROWS, Observations
from vnce_engine.data.table_transform import TableTransform
from vnce_engine.data.tables import as_numbers
from vnce_engine.estimators.choices import OPEN, Choices
from vnce_engine.estimators.column_transforms import (
    ColumnTransforms,
    TransformName,
    chosen_transforms,
    given_transforms,
)
from vnce_engine.estimators.seeds import RandomState, seed_of
from vnce_engine.estimators.table_methods import TableMethods
from vnce_engine.inference.advice import Advice, strong_dependence
from vnce_engine.inference.centrality import Centrality
from vnce_engine.inference.diagnostics import cluster_warnings, uncounted_pairs_warnings
from vnce_engine.inference.edges import ranked_edges
from vnce_engine.inference.mean_field import ceiling
from vnce_engine.inference.metrics import partial_correlation, scaled_interaction
from vnce_engine.inference.result import Edge, EdgeRule, FitResult
from vnce_engine.pipeline import short_fits
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.checks import check_count, check_range
from vnce_engine.runtime.progress import OnStep, Progress
from vnce_engine.runtime.reports import FitStatus, FitWarning
from vnce_engine.selection.transform_choice import choose_transform

FloatArray = NDArray[np.float64]


# Parameters are fields, declared once and inherited: a subclass with parameters of its own needs
# the same decorator, by which equality, hash and repr stay scikit-learn's.
@dataclass(kw_only=True, eq=False, repr=False)
class NetworkEstimator(TableMethods, OneToOneFeatureMixin, BaseEstimator):
    """A network from a table; subclasses say how it is estimated."""

    column_transform: TransformName | Literal["auto"] | Sequence[TransformName] = "none"
    random_state: RandomState = 0
    min_observed: int | None = None
    edge_threshold: float = 0.1
    max_iter: int | None = None

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        on_step: OnStep | None = None,
        checkpoint: Checkpoint | None = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Fit to X (n, d), an array or data frame of numbers, NaN where missing.

        Truncated Gaussians are of non-negative numbers. `y` is ignored. `clusters` (n,) has a label
        of each row, number or text: rows with the same label, as of one patient or one plate, may
        depend on each other, rows with different ones do not. None: no two rows do. `on_step` is
        called with a `FitStep` after every step, or every few hundred milliseconds of work;
        returning True cancels, and `status_` says so. A step's `checkpoint` holds what has been
        done: store `step.checkpoint.dump()`, and come back with
        `checkpoint=Checkpoint.load(stored)`, of `vnce_engine.runtime.checkpoint`. The same table,
        parameters and int for `random_state` then go on from the last estimate, to the same end
        within `tol`, and within what other draws would change where chains are drawn.

        Raises `ValueError` naming the parameter, the columns or the label that do not fit.
        """
        for name in ("min_observed", "max_iter"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_range("edge_threshold", self.edge_threshold, 0, 1)
        self._check_parameters()
        table = self._read(X, reset=True)
        names = self._column_names()
        self._refuse_columns(table, names)
        codes = None if clusters is None else cluster_codes(clusters, len(table))
        seed = seed_of(self.random_state)
        choice = self._choose_transforms(table, codes, names, seed, on_step, checkpoint)
        self.transform_evidence_ = list(choice.evidence)
        transform = TableTransform.fit(choice.columns, table, may_be_negative=self._may_be_negative)
        transformed = transform.forward(table)
        self._refuse_columns(transformed, names)
        observations = Observations.from_array(transformed, codes)
        num_rows = int(observations.observed.any(dim=1).sum())
        if num_rows < MIN_ROWS:
            raise ValueError(
                f"X must have at least {MIN_ROWS} rows with an observed value, got {num_rows}"
            )
        if observations.num_clusters is not None:
            refuse_few_clusters(observations.num_clusters)
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
        is_found = "linear-term-found" in {warning.code for warning in self.warnings_}
        return Choices(
            linear="free" if is_found else self.linear_choice_,
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
        clusters: Codes | None,
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
            clusters=clusters,
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
            *cluster_warnings(result),
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
