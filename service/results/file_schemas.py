"""JSON files of a result, made by the worker as the API sends them; undefined numbers are null."""

from pydantic import Field

from service.results.base import ResultModel
from service.results.choices import AppliedTransforms
from service.results.vocabulary import EdgeScore


class MatrixRead(ResultModel):
    """A square matrix of the estimated network."""

    names: list[str] = Field(description="Names of rows and columns, in order.")
    transform: AppliedTransforms = Field(description="The scale that it is on, or each variable's.")
    values: list[list[float]] = Field(description="Rows of the matrix.")


class PartialCorrelationsRead(ResultModel):
    """The matrix of partial correlations."""

    names: list[str] = Field(description="Names of rows and columns, in order.")
    transform: AppliedTransforms = Field(description="The scale that it is on, or each variable's.")
    values: list[list[float | None]] = Field(
        description="Rows of the matrix, 1 on its diagonal; null off it where K is not positive "
        "definite."
    )
    reason: str | None = Field(
        default=None, description="Why there are no partial correlations; null where there are."
    )


class ImputedCell(ResultModel):
    """A cell that had no value."""

    row: int = Field(ge=1, description="Row of the data set, from 1.")
    column: str = Field(description="Name of the variable.")
    value: float = Field(description="Its imputation, on the data's own scale.")


class ImputationsRead(ResultModel):
    """The table with every gap filled; a single best guess, which understates uncertainty."""

    names: list[str] = Field(description="Names of the columns, in order.")
    values: list[list[float]] = Field(
        description="Rows of the completed table; observed cells are unchanged."
    )
    imputed: list[ImputedCell] = Field(description="The cells that were filled, row by row.")


class RocRead(ResultModel):
    """A receiver operating characteristic of the ranked pairs against the true graph."""

    score: EdgeScore = Field(description="What the pairs are ranked by.")
    fpr: list[float] = Field(description="False positive rate at each threshold.")
    tpr: list[float] = Field(description="True positive rate at each threshold.")
    thresholds: list[float | None] = Field(
        description="Least score of a pair that counts as an edge; null: above every score."
    )
    auc: float | None = Field(ge=0, le=1, description="Area under the curve.")
    average_precision: float | None = Field(ge=0, le=1, description="Average precision.")
    n_pairs: int = Field(ge=0, description="Pairs compared.")
    n_true_edges: int = Field(ge=0, description="Edges of the true graph among them.")
    reason: str | None = Field(
        description="Why there is no curve (the true graph has all pairs or none); else null."
    )
