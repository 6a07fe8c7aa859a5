"""What a fit has chosen, and by what: transform, linear term, penalty, stable edges."""

from pydantic import Field

from service.jobs.vocabulary import (
    LassoChoice,
    LinearChoice,
    PenaltyChoice,
    PenaltyKind,
    Selection,
    Transform,
)
from service.results.base import ResultModel

# Of all variables, or of each.
AppliedTransforms = Transform | list[Transform]


class TransformStep(ResultModel):
    """One of the transforms that were compared, and what held-out rows say of it."""

    transform: AppliedTransforms = Field(
        description="That of all variables, or a list with that of each."
    )
    log_density: float | None = Field(
        description="Mean log density of held-out rows' observed cells, in nats per row and the "
        "table's units; null where it is not finite."
    )
    standard_error: float | None = Field(
        ge=0,
        description="Of its difference from the best that is the same for all variables, row by "
        "row; 0 for that one.",
    )
    chosen: bool = Field(description="Whether it was chosen.")


class LinearEvidence(ResultModel):
    """What `linear="auto"` was decided by, per row held out."""

    gain: float | None = Field(
        description="Held-out objective with the linear term minus without it; null if not finite, "
        "and then `rule` says what was done."
    )
    standard_error: float | None = Field(
        ge=0, description="Standard error of the gain; null if not finite."
    )
    rule: str = Field(description="When the linear term is kept.")


class LinearTermRead(ResultModel):
    """The linear term h."""

    requested: LinearChoice = Field(description="What the job asked for.")
    choice: LinearChoice = Field(description="`free` or `zero`.")
    values: list[float] = Field(description="h, one number a variable; all 0 where left out.")
    evidence: LinearEvidence | None = Field(
        description="Null if `linear` was not `auto`, and for a comparator if a variable lies "
        "further from zero than any model without the term allows."
    )


class PenaltyStep(ResultModel):
    """One strength that was tried."""

    kind: PenaltyKind = Field(
        description="Shape of the penalty: where `auto` was asked for, the path of `adaptive` is "
        "listed first, then that of `centred-ridge`."
    )
    strength: float = Field(gt=0, description="Strength, no unit.")
    criterion: float | None = Field(
        description="What the rule judges by: `held-out`, the mean objective per row held out "
        "(`gaussian-em`: the log likelihood); `ebic`, the criterion, lower is better; `stability`, "
        "the bound on the expected number of false edges. Null where the fit was not finite."
    )
    standard_error: float | None = Field(
        ge=0,
        description="Standard error of a held-out objective's difference from the best; null for "
        "other rules and where undefined.",
    )
    n_edges: int | None = Field(
        ge=0,
        description="Pairs whose interaction is not zero; of stable ones under `stability`. Null "
        "in results of the first release.",
    )
    chosen: bool = Field(
        description="Whether the rule chose this strength; `held-out` chooses a mean of several, "
        "and this is the nearest. `penalty.strength` says which one K was fitted with."
    )


class PenaltyRead(ResultModel):
    """The penalty and how its strength was chosen."""

    kind: PenaltyKind = Field(description="Shape of the penalty that was asked for.")
    fitted_kind: PenaltyKind | None = Field(
        description="Shape of the penalty that K was fitted with: of `auto`, `adaptive` or "
        "`centred-ridge`. Null without a penalty, as for a graph that `ebic` or `stability` chose."
    )
    requested: PenaltyChoice | LassoChoice | float | None = Field(
        description="What the job asked for."
    )
    selection: Selection | None = Field(
        description="The rule by which it was chosen; null where it was given."
    )
    strength: float | None = Field(
        description="Strength of the penalty that K was fitted with, that of `fitted_kind`; null "
        "without one. In results of the first release the strength that was chosen."
    )
    relaxation: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Of the penalty `adaptive`, how far the last iterations reduce the shrinkage "
        "of strong interactions found before: as far as held-out rows gain by it, or 1 where the "
        "strength was given. Null for other penalties, estimators and in earlier results.",
    )
    path: list[PenaltyStep] = Field(
        description="Every strength tried, in order; empty if none was."
    )


class StabilityRead(ResultModel):
    """What half-samples say about the edges; their shares are the edges' `inclusion`."""

    n_requested: int = Field(ge=0, description="Half-samples asked for.")
    n_ok: int = Field(ge=0, description="Half-samples that gave a graph.")
    n_failed: int = Field(ge=0, description="Half-samples that did not.")
    failures: dict[str, int] = Field(description="How many failed, by cause.")
    threshold: float = Field(ge=0, le=1, description="Inclusion from which an edge is stable.")
    mean_edges: float | None = Field(ge=0, description="Mean number of edges of a half-sample.")
    expected_false_edges: float | None = Field(
        ge=0, description="Upper bound on the expected number of false edges among the stable ones."
    )
    reason: str | None = Field(description="Why no inclusion is given; null where it is.")
    n_counted: dict[str, int] = Field(
        default_factory=dict,
        description="Half-samples with two different values of a variable, where they are fewer "
        "than `n_ok`: so many at most are counted for a pair with it.",
    )
