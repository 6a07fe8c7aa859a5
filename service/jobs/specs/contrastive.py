"""Estimators that tell data from noise: VNCE, and NCE on tables without holes."""

from typing import Annotated, Literal

from pydantic import Field

from service.jobs.specs.base import MAX_ITER, MaxIter, OfRequestsOnly, SpecModel, Tolerance
from service.jobs.vocabulary import (
    PENALTY_SHAPES,
    FdrMethod,
    Imputation,
    NoiseDraws,
    PenaltyChoice,
    PenaltyKind,
    Preset,
    Selection,
)

DEFAULT_TOL = 3e-3
DEFAULT_FDR = 0.1
# What preset "paper" fixes.
PAPER_NOISE_RATIO = 10
PAPER_NOISE_DRAWS = NoiseDraws.RANDOM

PenaltyStrength = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Penalty = Annotated[
    PenaltyChoice | PenaltyStrength | None,
    Field(
        description="Strength of the penalty; `auto`: chosen from the data; null: no penalty. "
        "`auto` goes by `selection`, for every model. Dimensionless; scaled so that a value has "
        "the effect it would have with 1000 rows. Without a penalty model `gaussian` tends to "
        "maximum likelihood."
    ),
]
EbicGamma = Annotated[
    float,
    Field(strict=True, ge=0, le=1, description="eBIC gamma in [0, 1]; 0 is the ordinary BIC."),
]
NoiseRatio = Annotated[
    int,
    Field(strict=True, ge=1, le=100, description="Noise rows per row of data, from 1 to 100."),
]
# The engine's own limits.
NOISE_SCALES = (1e-3, 1e3)
NoiseScale = Annotated[
    float,
    Field(
        strict=True,
        ge=NOISE_SCALES[0],
        le=NOISE_SCALES[1],
        description="Multiplies each column's fitted noise standard deviation; 1 leaves it. From "
        "0.001 to 1000.",
    ),
    # Jobs of earlier releases may have asked for any positive number.
    OfRequestsOnly,
]
_IMPUTATION = (
    "What missing cells become: the column's `mean`, `zero`, a draw of the `noise`, or `drop` "
    "every row that has one."
)


def has_bound(threshold: float, n_subsamples: int) -> bool:
    """Return whether so many half-samples bound the number of false edges at a threshold."""
    return threshold > 0.75 or 2 * threshold - 1 > 1 / n_subsamples


class ContrastiveSpec(SpecModel):
    """What may be said about penalty, noise and stopping."""

    penalty: Penalty = PenaltyChoice.AUTO
    penalty_kind: PenaltyKind = Field(
        PenaltyKind.AUTO,
        description=f"{PENALTY_SHAPES} `auto` is `adaptive` or, where penalty is "
        "`auto` too and held-out rows prefer it by two standard errors, `centred-ridge`; the "
        "result says which.",
    )
    penalties: Annotated[list[PenaltyStrength], Field(min_length=1, max_length=100)] | None = Field(
        None,
        description="Strengths that penalty `auto` chooses from; null: a grid of the engine's own.",
    )
    selection: Selection = Field(
        Selection.HELD_OUT,
        description="How penalty `auto` chooses: by `held-out` rows, by `ebic`, the extended "
        "Bayesian information criterion, or by the `stability` of edges over half-samples. "
        "`held-out` takes a mean of the strengths whose objective of held-out rows, in ten folds, "
        "is about the best, `ebic` the graph of the least criterion, `stability` the edges on "
        'which most half-samples agree. The last two need penalty_kind "l1" and fit K to the graph '
        "without a penalty.",
    )
    ebic_gamma: EbicGamma = 0.5
    n_subsamples: int = Field(
        100,
        strict=True,
        ge=2,
        le=1_000,
        multiple_of=2,
        description="`stability`: half-samples, an even number from 2 to 1000.",
    )
    inclusion_threshold: float = Field(
        0.75,
        strict=True,
        ge=0.6,
        le=1,
        description="`stability`: share of half-samples, from 0.6 to 1, that makes an edge stable.",
    )
    max_false_edges: float = Field(
        2.0,
        strict=True,
        gt=0,
        allow_inf_nan=False,
        description="`stability`: largest bound on the expected number of false edges.",
    )
    fdr: float = Field(
        DEFAULT_FDR,
        strict=True,
        gt=0,
        lt=1,
        description="False discovery rate: the expected share of false edges among the pairs that "
        "are found present, between 0 and 1.",
    )
    fdr_method: FdrMethod = Field(
        FdrMethod.BENJAMINI_HOCHBERG,
        description="How q-values are made of p-values: `benjamini-yekutieli` holds whatever the "
        "tests' dependence, and finds fewer edges.",
    )
    noise_ratio: NoiseRatio = 10
    noise_scale: NoiseScale = 1.0
    noise_draws: NoiseDraws = Field(
        NoiseDraws.SOBOL,
        description="Draws of the noise: `sobol`, scrambled Sobol points, of less variance, or "
        "`random`, independent.",
    )
    max_iter: MaxIter = Field(None, description=MAX_ITER.format("100"))
    tol: Tolerance = DEFAULT_TOL

    def check(self) -> None:
        """Raise `ValueError` unless the request chooses the penalty in one way."""
        if self.penalty is not PenaltyChoice.AUTO:
            if self.penalties is not None:
                raise ValueError('`penalties` are what `penalty="auto"` chooses from.')
            if self.selection is not Selection.HELD_OUT:
                raise ValueError(f'`selection="{self.selection}"` needs `penalty="auto"`.')
        if self.selection is not Selection.HELD_OUT and self.penalty_kind is not PenaltyKind.L1:
            raise ValueError(
                f'`selection="{self.selection}"` needs `penalty_kind="l1"`, whose zeros make a '
                "graph."
            )
        if self.selection is Selection.STABILITY and not has_bound(
            self.inclusion_threshold, self.n_subsamples
        ):
            raise ValueError(
                f"`inclusion_threshold={self.inclusion_threshold:g}` gives no bound on the number "
                f"of false edges with `n_subsamples={self.n_subsamples}`; increase it."
            )


class VnceEstimatorSpec(ContrastiveSpec):
    """Variational noise-contrastive estimation: missing cells are integrated out."""

    kind: Literal["vnce"] = Field("vnce", description="The estimator's kind.")
    preset: Preset = Field(
        Preset.DEFAULT,
        description="This project's recipe or, for reference, the `paper`'s own. That has 10 "
        "independent noise rows per row of data, its own stopping rule in place of `tol`, and, "
        "where `auto` is asked for, no linear term and no penalty.",
    )
    max_iter: MaxIter = Field(None, description=MAX_ITER.format('100, or 80 with preset "paper"'))

    def check(self) -> None:
        """Raise `ValueError` besides where the paper's recipe would not heed what is asked for.

        What equals a default asks for nothing.
        """
        super().check()
        if self.preset is not Preset.PAPER:
            return
        asks_for_sobol = "noise_draws" in self.model_fields_set and (
            self.noise_draws is not PAPER_NOISE_DRAWS
        )
        if self.noise_ratio != PAPER_NOISE_RATIO or asks_for_sobol or self.tol != DEFAULT_TOL:
            raise ValueError(
                'Preset "paper" fixes `noise_ratio=10`, `noise_draws="random"` and its own '
                'stopping rule; leave `noise_ratio`, `noise_draws` and `tol` out, or use "default".'
            )
        asks_for_more = (
            self.penalty_kind is PenaltyKind.L1,
            self.penalties is not None,
            self.noise_scale != 1,
            self.fdr != DEFAULT_FDR,
            self.fdr_method is not FdrMethod.BENJAMINI_HOCHBERG,
        )
        if any(asks_for_more):
            raise ValueError(
                'Preset "paper" does not support `penalty_kind="l1"`, `penalties`, `selection`, '
                '`fdr`, `fdr_method` or `noise_scale`; leave them out, or use "default".'
            )


class NceEstimatorSpec(ContrastiveSpec):
    """Noise-contrastive estimation on a filled or shortened table; a comparator."""

    kind: Literal["nce"] = Field("nce", description="The estimator's kind.")
    imputation: Annotated[Imputation, Field(description=_IMPUTATION)] = Imputation.MEAN
