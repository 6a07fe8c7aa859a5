"""What a fit reports, while it runs and when it has ended."""

from dataclasses import dataclass
from enum import StrEnum

from vnce_engine.model import TruncatedGaussian


class FitStatus(StrEnum):
    """How a fit ended. Estimates are those of the last finite point in every case."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "max_iterations"
    NON_FINITE = "non_finite"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class FitStep:
    """One report of a running fit."""

    stage: str
    """"linear term", "penalty" or "fit"."""
    fraction: float
    """Share of the whole that is done, from 0 to 1; it never falls."""
    iteration: int
    """Cycles done in this stage."""
    objective: float | None
    """Latest penalised objective, nats a row; None before there is one."""


@dataclass(frozen=True)
class PenaltyStep:
    """One strength on the path along which the penalty was chosen."""

    strength: float
    held_out_objective: float
    """Mean VNCE objective of held-out rows, nats a row."""
    standard_error: float
    """Of its difference from the best strength's, row by row; 0 for the best."""
    chosen: bool


@dataclass(frozen=True)
class LinearEvidence:
    """What held-out rows say about the linear term."""

    gain: float
    """Mean gain of the held-out objective from a free linear term, nats a row."""
    standard_error: float
    rule: str
    """When the term is kept, in words."""


@dataclass(frozen=True)
class Edge:
    """One pair of variables, by their positions."""

    source: int
    target: int
    precision: float
    partial_correlation: float
    selected: bool
    """Whether |partial correlation| reaches the threshold: a rule for display, not a test."""
    n_pairwise: int
    """Rows in which both variables were observed."""


@dataclass(frozen=True)
class FitWarning:
    """Something a reader of the result must know."""

    code: str
    message: str
    columns: tuple[str, ...] = ()
    """Names of the columns concerned, where it is about some of them."""


@dataclass(frozen=True)
class Diagnostics:
    """Figures by which to judge a fit."""

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


@dataclass(frozen=True)
class FitResult:
    """The end of a fit, in the units of the table it was given."""

    model: TruncatedGaussian
    status: FitStatus
    message: str
    objective_path: tuple[float, ...]
    """The penalised objective after each cycle, nats a row; it may fall a little at E-steps and
    changes level where the noise ratio does."""
    num_iterations: int
    penalty: float | None
    penalty_path: tuple[PenaltyStep, ...]
    linear_choice: str
    linear_evidence: LinearEvidence | None
    diagnostics: Diagnostics
    warnings: tuple[FitWarning, ...]
