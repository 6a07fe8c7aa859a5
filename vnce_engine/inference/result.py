"""What a fit ends with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.reports import FitStatus, FitWarning


@dataclass(frozen=True)
class PenaltyStep:
    """One strength on the path along which the penalty was chosen."""

    kind: PenaltyKind
    strength: float
    criterion: float
    """What the rule judges by: "held-out" by the mean VNCE objective of held-out rows (of Gaussian
    EM, their log likelihood), nats per row; "ebic" by the criterion, lower is better; "stability"
    by its bound on the expected number of false edges."""
    standard_error: float | None
    """Of a held-out objective's difference from the best strength's, row by row; 0 for the best.
    None for the other rules."""
    num_edges: int
    """Pairs whose interaction is not zero; of stable edges if the rule is "stability"."""
    chosen: bool
    """Whether the rule chose it; of held-out rows the nearest to what they chose, a mean."""


def path_of_the_chosen(path: Sequence[PenaltyStep]) -> list[PenaltyStep]:
    """Return the part of the path that is of the kind of penalty that was chosen."""
    kinds = {step.kind for step in path if step.chosen}
    return [step for step in path if step.kind in kinds]


@dataclass(frozen=True)
class Stability:
    """What half-samples say about the edges, at the chosen strength."""

    n_requested: int
    n_ok: int
    failures: Mapping[str, int]
    """How many half-samples failed, by cause."""
    threshold: float
    """Inclusion from which an edge is stable."""
    inclusion: NDArray[np.float64] | None
    """(d, d): share of the half-samples that say something of the pair that have the edge, NaN
    where too few do; None with a reason."""
    counted: NDArray[np.int64] | None
    """(d, d): half-samples that say something of each pair, as both columns have two different
    values in them; None with a reason."""
    mean_edges: float | None
    """Mean number of edges of a half-sample."""
    expected_false_edges: float | None
    """Bound on the expected number of stable edges that should not be there."""
    reason: str | None
    """Why no inclusion is given."""

    @property
    def n_failed(self) -> int:
        """Half-samples without a graph."""
        return sum(self.failures.values())


@dataclass(frozen=True)
class LinearEvidence:
    """What held-out rows say about the linear term."""

    gain: float
    """Mean gain of the held-out objective from a free linear term, nats per row."""
    standard_error: float
    rule: str
    """When the term is kept, in words."""
    settled: tuple[str, ...] = ("zero", "free")
    """Which of the two fits had settled; where one alone has, it was chosen."""


class EdgeRule(StrEnum):
    """By what pairs are selected as the edges of the network."""

    FALSE_DISCOVERY_RATE = "false-discovery-rate"
    """Those whose q-value is at most the rate: a test, whose verdict is that they are present."""
    THRESHOLD = "threshold"
    """Those whose |partial correlation| reaches the threshold and is not zero: for display, not a
    test. Where edges have no q-values, or a graph was chosen by eBIC or stability."""


class Verdict(StrEnum):
    """What a table says about an edge."""

    PRESENT = "present"
    """The q-value is at most the false discovery rate, and the interval not all of -1 to 1."""
    ABSENT = "absent"
    """Not that, and the whole interval is of partial correlations too small to matter."""
    UNDECIDED = "undecided"
    """Neither: the table has too few rows, or observed cells, to tell, or the model is wrong."""


@dataclass(frozen=True)
class Uncertainty:
    """Partial correlations without the penalty's bias, and how far they vary over tables."""

    partial_correlation: Tensor
    """(d, d), symmetric, 1 on the diagonal. A step takes no account of bounds: one may come out
    beyond -1 or 1 where little is known."""
    null_error: Tensor
    """(d, d): the standard error that each would have if it were zero, which its test goes by. It
    is that of K_ij in units of sqrt(K_ii K_jj); 0 on the diagonal."""
    covariance: Tensor
    """(d, d, d): entry (i, j, k) is the covariance of those of pairs (i, j) and (i, k); 0 where one
    of them is no pair."""

    @property
    def standard_error(self) -> Tensor:
        """(d, d), of the same; 0 on the diagonal."""
        return self.covariance.diagonal(dim1=1, dim2=2).sqrt()

    def with_columns_reordered(self, order: Tensor) -> "Uncertainty":
        """Return that of the table whose columns are x[order], int64 (d,)."""
        return replace(
            self,
            partial_correlation=self.partial_correlation[order][:, order],
            null_error=self.null_error[order][:, order],
            covariance=self.covariance[order][:, order][:, :, order],
        )


@dataclass(frozen=True)
class Edge:
    """One pair of variables, by their positions."""

    source: int
    target: int
    precision: float
    scaled_interaction: float
    """-K_ij / sqrt(K_ii K_jj), by whose size pairs are ranked; there for any K."""
    partial_correlation: float
    """The same as a correlation, from -1 to 1; NaN where K is not positive definite."""
    selected: bool
    """Whether it is an edge of the network, by the estimator's `edge_rule_`. Of an indefinite K no
    pair reaches a threshold."""
    n_pairwise: int
    """Rows in which both variables were observed."""
    inclusion: float | None = None
    """Share of half-samples whose graph has the edge; None where none were drawn."""
    debiased: float | None = None
    """The partial correlation without the penalty's bias, at the price of a larger spread. None,
    as all that follows, where it is not known."""
    standard_error: float | None = None
    """Of `debiased`, over tables of as many rows with as many missing cells."""
    lower: float | None = None
    upper: float | None = None
    """Ends of the 95 % confidence interval."""
    p_value: float | None = None
    """Two-sided, of the hypothesis that the partial correlation is zero."""
    q_value: float | None = None
    """The smallest false discovery rate at which the pair is among the edges found."""
    verdict: Verdict | None = None
    """None where the estimator has no standard errors."""


@dataclass(frozen=True)
class Diagnostics:
    """Figures by which to judge a fit; NaN where an estimator has no such thing."""

    gradient_norm: float
    """Frobenius norm of the gradient of the penalised objective, columns scaled."""
    effective_sample_size: float | None
    """Mean over data rows of (sum w)² / (k sum w²), w = phi / q of k draws; None if complete."""
    smallest_eigenvalue: float
    """Of the scaled K; the matrix is positive definite if it is above 0."""
    is_positive_definite: bool
    separated_share: float
    """Share of data rows told from noise with certainty: class probability beyond 1 - 1e-6."""
    mean_classification: float
    """Mean probability of the wrong class over data rows: near 0 when noise is told apart."""
    largest_interaction: float
    """Largest |kappa_ij| = |K_ij| / sqrt(k0_i k0_j)."""
    num_rows: int
    num_empty_rows: int
    num_missing: int
    num_draws: int
    """Draws from q for each missing cell of a data row."""
    noise_ratio: float
    """Noise rows a data row in the last cycles."""
    num_clusters: int | None = None
    """Clusters with something observed; None where rows count as independent."""


@dataclass(frozen=True)
class FitResult:
    """The end of a fit, in the units of the table it was given."""

    model: QuadraticModel
    status: FitStatus
    message: str
    objective_path: tuple[float, ...]
    """The penalised objective after each cycle, nats per row; it may fall a little at E-steps. Of a
    comparator, what `objective_name` says."""
    num_iterations: int
    penalty: float | None
    """Strength of the penalty in the objective that K maximises; None without one. It need not be
    the one that `penalty_path` has for chosen: to a graph, by "ebic" or "stability", K is fitted
    without a penalty (with a weak ridge where rows are few), and held-out rows choose a mean of
    the strengths that do about as well."""
    penalty_path: tuple[PenaltyStep, ...]
    linear_choice: str
    linear_evidence: LinearEvidence | None
    diagnostics: Diagnostics
    warnings: tuple[FitWarning, ...]
    selection: str | None = None
    """The rule by which the penalty was chosen; None where it was given."""
    penalty_kind: str | None = None
    """The shape of the penalty that `penalty` is the strength of; None without one."""
    penalty_relaxation: float | None = None
    """By how much, from 0 to 1, an adaptive penalty spares strong interactions in the end more than
    it did while they were found; None of other kinds, and where it never does."""
    stability: Stability | None = None
    """What half-samples say; None where none were drawn."""
    objective_name: str = "objective per row"
    """What `objective_path` has, in a few words, for an axis."""
    uncertainty: Uncertainty | None = None
    """How sure the partial correlations are; None with a reason."""
    no_uncertainty: str | None = "the estimator has no standard errors"
    """Why it is not known."""
    noise_starts: tuple[int, ...] = ()
    """Positions in `objective_path` from which noise is another than before: values on either side
    are of different objectives, whose levels are not to be compared."""
    column_change: NDArray[np.float64] | None = None
    """(d,): how far the mean of each column's imputed cells moved in the last round or iteration,
    in units of the column's root mean square (of a Gaussian, standard deviation); None where
    nothing is imputed."""
    model_draws: tuple[QuadraticModel, ...] = ()
    """The model at draws of its parameters from about their posterior, K positive definite, and c
    the estimate's; none where that is not known."""

    def with_columns_reordered(self, order: Tensor) -> "FitResult":
        """Return the result of the table whose columns are x[order], int64 (d,)."""
        stability = self.stability
        if stability is not None and stability.inclusion is not None:
            index = np.ix_(order.numpy(), order.numpy())
            counted = None if stability.counted is None else stability.counted[index]
            inclusion = stability.inclusion[index]
            stability = replace(stability, inclusion=inclusion, counted=counted)
        uncertainty = self.uncertainty
        if uncertainty is not None:
            uncertainty = uncertainty.with_columns_reordered(order)
        reordered = self.with_models(lambda model: model.with_columns_reordered(order))
        return replace(reordered, stability=stability, uncertainty=uncertainty)

    def with_models(self, change: Callable[[QuadraticModel], QuadraticModel]) -> "FitResult":
        """Return the result of a table of which a model is `change` of what it is of this one."""
        draws = tuple(change(model) for model in self.model_draws)
        return replace(self, model=change(self.model), model_draws=draws)
