"""Estimators that VNCE is to be compared with, none of which needs noise."""

from typing import Annotated, Literal

from pydantic import Field

from service.jobs.specs.base import MAX_ITER, MaxIter, SpecModel, Tolerance
from service.jobs.specs.contrastive import DEFAULT_TOL, EbicGamma
from service.jobs.vocabulary import (
    PENALTY_SHAPES,
    Filling,
    GivenPenaltyKind,
    LassoChoice,
    LikelihoodMethod,
    PenaltyKind,
    ScoreWeight,
)

StepSize = Annotated[
    float,
    Field(
        strict=True,
        gt=0,
        allow_inf_nan=False,
        description="Size of the first gradient step, columns scaled to mean square 1; it falls "
        "over the epochs. Only stochastic ascent has one.",
    ),
]
Strength = Annotated[
    Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] | None,
    Field(
        description="Strength of the penalty; null: none. Dimensionless; scaled so that a value "
        "has the effect it would have with 1000 rows. These estimators have no objective to choose "
        "it by."
    ),
]
SmoothPenaltyKind = Annotated[
    Literal[PenaltyKind.ADAPTIVE, PenaltyKind.RIDGE],
    Field(description="Shape of the penalty. These estimators have no `l1`."),
]
AnyPenaltyKind = Annotated[GivenPenaltyKind, Field(description=PENALTY_SHAPES)]
Method = Annotated[
    LikelihoodMethod,
    Field(
        description="How the likelihood is raised: `natural` gradients on persistent chains, which "
        "need no step size, or the paper's `stochastic` ones. Those are 80 epochs of minibatches "
        "with chains started anew."
    ),
]
FillingName = Annotated[
    Filling,
    Field(
        description="What missing cells become: draws by `gibbs`, in turn with the estimate; the "
        "column's `mean`; `zero`; or `drop` every row that has one."
    ),
]
Weight = Annotated[
    ScoreWeight,
    Field(
        description="Weight function: `square`, the original x², or `capped`, the bounded min(x, "
        "1). Columns are scaled to mean square 1."
    ),
]


class MleEstimatorSpec(SpecModel):
    """Maximum likelihood by Gibbs sampling of missing cells and of the model."""

    kind: Literal["mle"] = Field("mle", description="The estimator's kind.")
    method: Method = LikelihoodMethod.NATURAL
    step_size: StepSize = 0.1
    penalty: Strength = None
    penalty_kind: SmoothPenaltyKind = PenaltyKind.ADAPTIVE
    max_iter: MaxIter = Field(
        None, description=MAX_ITER.format("400, or 80 epochs if `stochastic`")
    )
    tol: float = Field(
        0.5,
        strict=True,
        gt=0,
        lt=1,
        description="`natural`: stop when the Monte Carlo variance is below this fraction of the "
        "sampling variance.",
    )


class ContrastiveDivergenceEstimatorSpec(SpecModel):
    """Contrastive divergence, plain or persistent; missing cells by Gibbs sampling."""

    kind: Literal["contrastive-divergence"] = Field(
        "contrastive-divergence", description="The estimator's kind."
    )
    persistent: bool = Field(
        True,
        strict=True,
        description="Persistent chains (PCD); false restarts them at the data (CD-k).",
    )
    n_sweeps: int = Field(
        1, strict=True, ge=1, le=1_000, description="Gibbs sweeps between draws: CD-k's k."
    )
    step_size: StepSize = 0.1
    penalty: Strength = None
    penalty_kind: SmoothPenaltyKind = PenaltyKind.ADAPTIVE
    max_iter: MaxIter = Field(None, description=MAX_ITER.format("80 epochs"))


class PseudoLikelihoodEstimatorSpec(SpecModel):
    """Maximum pseudo-likelihood: each variable given all others."""

    kind: Literal["pseudo-likelihood"] = Field(
        "pseudo-likelihood", description="The estimator's kind."
    )
    imputation: FillingName = Filling.GIBBS
    penalty: Strength = None
    penalty_kind: AnyPenaltyKind = PenaltyKind.ADAPTIVE
    max_iter: MaxIter = Field(None, description=MAX_ITER.format("100"))
    tol: Tolerance = DEFAULT_TOL


class ScoreMatchingEstimatorSpec(SpecModel):
    """Generalised score matching on the non-negative orthant."""

    kind: Literal["score-matching"] = Field("score-matching", description="The estimator's kind.")
    imputation: FillingName = Filling.GIBBS
    weight: Weight = ScoreWeight.CAPPED
    penalty: Strength = None
    penalty_kind: AnyPenaltyKind = PenaltyKind.ADAPTIVE
    max_iter: MaxIter = Field(None, description=MAX_ITER.format("100"))
    tol: Tolerance = DEFAULT_TOL


class GaussianEmEstimatorSpec(SpecModel):
    """Gaussian maximum likelihood from incomplete rows, and graphical lasso on it."""

    kind: Literal["gaussian-em"] = Field("gaussian-em", description="The estimator's kind.")
    penalty: (
        LassoChoice | Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] | None
    ) = Field(
        None,
        description="Strength of a graphical lasso on the covariance that EM has found, or `ebic` "
        "or `cv`; null: none. Columns are standardised; `ebic` chooses it by the extended Bayesian "
        "information criterion, `cv` by held-out rows.",
    )
    ebic_gamma: EbicGamma = 0.5
    max_iter: MaxIter = Field(None, description=MAX_ITER.format("500"))
    tol: float = Field(
        1e-7,
        strict=True,
        gt=0,
        lt=1,
        description="Gain of an iteration, in nats per row, at which EM has converged.",
    )


class GaussianScoreMatchingEstimatorSpec(SpecModel):
    """Gaussian score matching of the observed cells' marginal density."""

    kind: Literal["gaussian-score-matching"] = Field(
        "gaussian-score-matching", description="The estimator's kind."
    )
    penalty: (
        Literal[LassoChoice.CV]
        | Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
        | None
    ) = Field(
        None,
        description="Strength of a ridge on interactions, or `cv`; null: none. Columns are "
        "standardised. Dimensionless; scaled so that a value has the effect it would have with "
        "1000 rows; `cv` chooses it by held-out rows.",
    )
    max_iter: MaxIter = Field(None, description=MAX_ITER.format("1000"))
    tol: float = Field(
        1e-5,
        strict=True,
        gt=0,
        lt=1,
        description="Largest entry of the gradient, columns standardised, at which the search has "
        "converged.",
    )
