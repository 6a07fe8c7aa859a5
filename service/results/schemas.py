"""What a finished estimation says; made by the worker, stored once, never changed.

No field has a default and no number is NaN or infinite: what is undefined is null.
"""

from typing import Annotated, Literal

from pydantic import Field

from service.jobs.vocabulary import (
    FdrMethod,
    LinearChoice,
)
from service.results.base import ResultModel
from service.results.choices import (
    AppliedTransforms,
    LinearTermRead,
    PenaltyRead,
    StabilityRead,
    TransformStep,
)
from service.results.vocabulary import EdgeRule, EdgeScore, FitStatus


class ConvergenceRead(ResultModel):
    """How the fit ended."""

    status: FitStatus = Field(description="How the fit ended.")
    converged: bool = Field(description="Whether the stopping rule was met.")
    message: str = Field(description="What happened and, if it did not converge, what to try.")
    n_iter: int = Field(ge=0, description="Iterations made.")
    objective: float | None = Field(
        description="Last value of the objective, per row: with its penalty, and of columns scaled "
        "for the fit. Of Monte-Carlo likelihood and contrastive divergence it is the squared "
        "length of the gradient, noise included; of Gaussian EM the log likelihood without a "
        "penalty; of score matching its negated loss (`gaussian-score-matching`: less the penalty)."
    )
    gradient_norm: float | None = Field(ge=0, description="Norm of the scaled gradient at the end.")
    column_change: list[float | None] | None = Field(
        default=None,
        description="How far the mean of each variable's imputed cells moved in the last round, in "
        "units of its root mean square (Gaussian EM: standard deviation); null where an estimator "
        "does not impute in rounds.",
    )


class DiagnosticsRead(ResultModel):
    """Whether the result can be trusted; null where a figure does not apply."""

    is_positive_definite: bool = Field(
        description="Whether K is; if not, there are no partial correlations, and no pair is "
        "selected."
    )
    smallest_eigenvalue: float = Field(description="Smallest eigenvalue of the scaled K.")
    separated_share: float | None = Field(
        ge=0, le=1, description="Share of data rows that are told from noise with certainty."
    )
    mean_classification: float | None = Field(
        ge=0,
        le=1,
        description="Mean probability that a row of data is taken for noise; near 0 where the "
        "noise is told apart too easily.",
    )
    effective_sample_size: float | None = Field(
        ge=0,
        le=1,
        description="Effective share of the latent draws, mean over data rows with missing cells; "
        "null where there are none.",
    )
    n_draws: int | None = Field(ge=0, description="Latent draws per row of data.")
    largest_interaction: float | None = Field(
        ge=0,
        description="Largest interaction between two variables, both scaled to unit precision; "
        "above 1 the estimates may be diverging. Of model `gaussian` the largest partial "
        "correlation, sign dropped.",
    )
    noise_ratio: float | None = Field(
        gt=0, description="Noise rows per row of data in the last iterations."
    )


class ResultWarning(ResultModel):
    """Something a reader of the result must know."""

    code: str = Field(description="Stable name, such as `not-positive-definite`.")
    message: str = Field(description="What it is and what to do.")
    columns: list[str] = Field(description="Variables concerned; may be empty.")


NumClusters = Annotated[
    Annotated[int, Field(ge=1)] | None,
    Field(
        description="Clusters of rows, which may depend on each other within one; null where rows "
        "count as independent."
    ),
]


class CountsRead(ResultModel):
    """How much data there was."""

    n_rows: int = Field(ge=0, description="Rows of the table.")
    n_empty_rows: int = Field(
        ge=0, description="Rows with nothing observed: left out of the fit, still imputed."
    )
    n_fitted_rows: int = Field(ge=0, description="Rows that the fit used.")
    n_clusters: NumClusters = None
    n_variables: int = Field(ge=2, description="Variables used.")
    n_missing: int = Field(ge=0, description="Missing cells, those treated as missing included.")
    n_censored: int = Field(ge=0, description="Censored or unknown cells treated as missing.")


class EdgeRuleRead(ResultModel):
    """When a pair counts as an edge."""

    decided_by: EdgeRule = Field(
        default=EdgeRule.THRESHOLD,
        description="`false-discovery-rate`: pairs whose verdict is `present` are selected; "
        "`threshold`, where edges have no q-values or the penalty chose a graph: those whose "
        "|partial correlation| reaches it, a rule for display.",
    )
    threshold: float = Field(
        ge=0,
        le=1,
        description="|partial correlation| from which an edge matters: one whose interval lies "
        "within it is absent.",
    )
    text: str = Field(
        description="The rule in words. Where K is not positive definite, why no pair is selected."
    )
    n_selected: int = Field(ge=0, description="Pairs that meet it.")
    n_pairs: int = Field(ge=1, description="All pairs.")


class UncertaintyRead(ResultModel):
    """How sure the edges are: the tests of all of them, counted."""

    reason: str | None = Field(
        description="Why edges have no standard errors; if set, all fields below are null."
    )
    linear: LinearChoice | None = Field(
        default=None,
        description="The linear term of debiased estimates: `free` also where a test has found "
        "one that the fit does without, and warns `linear-term-found`.",
    )
    fdr: float | None = Field(
        gt=0, lt=1, description="False discovery rate at which pairs are found present."
    )
    fdr_method: FdrMethod | None = Field(description="How q-values are made of p-values.")
    n_present: int | None = Field(ge=0, description="Pairs found present.")
    n_absent: int | None = Field(ge=0, description="Pairs found absent.")
    n_undecided: int | None = Field(ge=0, description="Pairs found neither present nor absent.")


class IntervalRead(ResultModel):
    """An estimate and its 95 % confidence interval."""

    value: float = Field(description="The estimate.")
    lower: float = Field(description="Lower end of the interval.")
    upper: float = Field(description="Its upper end.")


class VariableRead(ResultModel):
    """A variable's place in the network; null where it is not known."""

    name: str = Field(description="Its name.")
    n_observed: int = Field(ge=0, description="Rows in which it is observed.")
    degree: int | None = Field(ge=0, description="Pairs with it that are found present.")
    strength: IntervalRead | None = Field(
        description="Sum of their |partial correlations|, without the penalty's bias. The interval "
        "takes for given which pairs are present."
    )
    expected_influence: IntervalRead | None = Field(
        description="Sum of its partial correlations with all others, signs kept."
    )
    predictability: IntervalRead | None = Field(
        description="R²: the share of its variance, on the transformed scale, that all others "
        "explain in the rows of the fit."
    )


class ScoreRead(ResultModel):
    """Agreement with the true graph under one score."""

    score: EdgeScore = Field(description="What the pairs were ranked by.")
    auc: float | None = Field(ge=0, le=1, description="Area under the ROC curve.")
    average_precision: float | None = Field(ge=0, le=1, description="Average precision.")
    reason: str | None = Field(description="Why there is no number; null where there is one.")


class VersionsRead(ResultModel):
    """What computed the result."""

    vnce: str = Field(description="Version of VNCE.")
    python: str = Field(description="Version of Python.")
    numpy: str = Field(description="Version of NumPy.")
    scipy: str = Field(description="Version of SciPy.")
    torch: str = Field(description="Version of PyTorch.")


class DatasetIdentity(ResultModel):
    """Which data it was."""

    id: str = Field(description="Identifier of the data set.")
    name: str = Field(description="Its name at the time.")
    sha256: str = Field(description="SHA-256 of the upload, in hexadecimal.")


class TimingRead(ResultModel):
    """Where the time went, in seconds."""

    fit_seconds: float = Field(ge=0, description="Choosing the penalty and fitting.")
    export_seconds: float = Field(ge=0, description="Making matrices, tables and figures.")
    n_threads: int = Field(ge=1, description="Threads that the numerical libraries used.")
    resumed: bool = Field(
        default=False,
        description="Whether the fit went on from where an interrupted attempt was; times are then "
        "those of the last attempt alone, and the estimate that of an uninterrupted fit to within "
        "`tol`.",
    )


class EstimationResult(ResultModel):
    """The document of one estimation."""

    kind: Literal["estimation"] = Field(description="The job's kind.")
    names: list[str] = Field(description="Variables, in the order of every matrix below.")
    transform: AppliedTransforms = Field(
        description="The scale that estimates are on: the transform of all variables, or a list "
        "with that of each."
    )
    transform_evidence: list[TransformStep] = Field(
        default_factory=list,
        description="What was compared where the job asked for `auto`; else empty.",
    )
    precision: list[list[float]] = Field(
        description="K, the interaction matrix: symmetric, on the transformed scale, the columns' "
        "own units. Not the inverse covariance of truncated data."
    )
    linear: LinearTermRead = Field(description="The linear term h.")
    log_partition: float | None = Field(
        description="c, the logarithm of the normalising constant; null where the estimator does "
        "not know it."
    )
    penalty: PenaltyRead | None = Field(
        description="The penalty and how it was chosen; null where the estimator has none."
    )
    stability: StabilityRead | None = Field(
        description="What half-samples say; null where none were drawn."
    )
    convergence: ConvergenceRead = Field(description="How the fit ended.")
    diagnostics: DiagnosticsRead = Field(description="Whether the result can be trusted.")
    warnings: list[ResultWarning] = Field(description="What a reader must know; may be empty.")
    assumption: str = Field(description="What must hold about the missing cells.")
    counts: CountsRead = Field(description="How much data there was.")
    edge_rule: EdgeRuleRead = Field(description="When a pair counts as an edge.")
    uncertainty: UncertaintyRead | None = Field(
        default=None, description="How sure the edges are; null in results of earlier releases."
    )
    variables: list[VariableRead] = Field(
        default_factory=list,
        description="Each variable's place in the network; empty in results of earlier releases.",
    )
    scores: list[ScoreRead] = Field(
        description="Agreement with the true graph, every score once; without a true graph each "
        "says so."
    )
    seed: int = Field(ge=0, description="Seed of every random draw.")
    versions: VersionsRead = Field(description="What computed the result.")
    dataset: DatasetIdentity = Field(description="Which data it was.")
    timing: TimingRead = Field(description="Where the time went.")
