"""What the API says about a data set.

No field has a default, and no number is NaN or infinite: what is undefined is null.
"""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.datasets.vocabulary import (
    ChangeCode,
    DatasetFormat,
    Decimal,
    JsonLayout,
    TokenKind,
    WarningCode,
)


class DatasetModel(BaseModel):
    """Base of every part of a data set's description."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class CellToken(DatasetModel):
    """A text that stands for no number, and how often it occurs in a column."""

    kind: TokenKind = Field(description="What the text says about the value.")
    text: str = Field(description="The cell's text without surrounding blanks; may be empty.")
    count: int = Field(ge=1, description="Number of cells.")
    lower: float | None = Field(description="The value is at least this; null if no bound is told.")
    upper: float | None = Field(description="The value is at most this; null if no bound is told.")


class ColumnSummary(DatasetModel):
    """One variable. Observed, missing, censored and unknown cells add up to the rows."""

    name: str = Field(description="Name after Unicode NFC, unique within the data set.")
    unit: str | None = Field(description="Unit from the units row; null without one.")
    n_observed: int = Field(ge=0, description="Cells that hold a number.")
    n_missing: int = Field(ge=0, description="Cells that hold nothing or a missing token.")
    n_censored: int = Field(ge=0, description="Cells that hold a bound, such as <0.5.")
    n_unknown: int = Field(ge=0, description="Cells beyond an unstated limit, such as ND.")
    n_zeros: int = Field(ge=0, description="Observed cells that are exactly 0.")
    n_negative: int = Field(ge=0, description="Observed cells below 0.")
    minimum: float | None = Field(description="Smallest observed value; null without any.")
    maximum: float | None = Field(description="Largest observed value; null without any.")
    mean: float | None = Field(description="Mean of the observed values; null without any.")
    is_constant: bool = Field(description="Whether all observed values are one and the same.")
    is_integer: bool = Field(description="Whether all observed values are whole numbers.")
    tokens: list[CellToken] = Field(
        description="The most frequent texts that stand for no number, at most 50."
    )


class CsvDialect(DatasetModel):
    """How a CSV upload was read."""

    delimiter: str = Field(description="Character between cells.")
    delimiter_detected: bool = Field(description="Whether it was found rather than declared.")
    decimal: Decimal = Field(description="Decimal mark.")
    decimal_detected: bool = Field(description="Whether it was found rather than declared.")
    header_line: int = Field(ge=1, description="Line of the file that holds the names, from 1.")


class Change(DatasetModel):
    """Something that was done to the upload on its way to a table of numbers."""

    code: ChangeCode = Field(description="Stable name of the change.")
    message: str = Field(description="What was done.")
    columns: list[str] = Field(description="Columns concerned; empty if it concerns none.")
    count: int = Field(ge=1, description="How many lines, names, columns or cells.")


class DatasetWarning(DatasetModel):
    """Something worth knowing before a model is fitted."""

    code: WarningCode = Field(description="Stable name of the warning.")
    message: str = Field(description="What was seen and what may be done.")
    columns: list[str] = Field(description="Columns concerned; empty if it concerns none.")
    rows: list[int] = Field(description="Rows concerned, from 1, the first 20; may be empty.")


class ColumnPair(DatasetModel):
    """Two variables."""

    first: str = Field(description="Name of the one that comes first in the data set.")
    second: str = Field(description="Name of the other.")


class DatasetSummary(DatasetModel):
    """What was read, how, and what is remarkable about it."""

    n_rows: int = Field(ge=1, description="Rows.")
    n_columns: int = Field(ge=1, description="Columns, each a variable.")
    n_observed: int = Field(ge=0, description="Cells that hold a number.")
    n_missing: int = Field(ge=0, description="Cells that hold nothing or a missing token.")
    n_censored: int = Field(ge=0, description="Cells that hold a bound, such as <0.5.")
    n_unknown: int = Field(ge=0, description="Cells beyond an unstated limit, such as ND.")
    n_patterns: int = Field(ge=1, description="Different sets of observed columns among the rows.")
    n_complete_rows: int = Field(ge=0, description="Rows in which every cell is observed.")
    n_empty_rows: int = Field(ge=0, description="Rows in which no cell is observed.")
    n_never_together: int = Field(ge=0, description="Pairs of columns never observed in one row.")
    never_together: list[ColumnPair] = Field(description="The first 100 of these pairs.")
    columns: list[ColumnSummary] = Field(description="The variables, in the upload's order.")
    encoding: str | None = Field(description="Character encoding; null for binary formats.")
    encoding_detected: bool = Field(description="Whether it was found rather than declared.")
    csv_dialect: CsvDialect | None = Field(description="Null unless the format is csv.")
    json_layout: JsonLayout | None = Field(description="Null unless the format is json.")
    changes: list[Change] = Field(description="Every change made on the way; may be empty.")
    warnings: list[DatasetWarning] = Field(description="What is remarkable; may be empty.")


class DatasetPreview(DatasetModel):
    """What an upload would become."""

    format: DatasetFormat = Field(description="Format that was read.")
    sha256: str = Field(description="SHA-256 of the bytes, in hexadecimal.")
    size: int = Field(ge=0, description="Size of the upload, in bytes.")
    summary: DatasetSummary = Field(description="What was read, how, and what is remarkable.")
    first_rows: list[list[float | None]] = Field(
        description="The first 5 rows, null where no number is known."
    )


class DatasetItem(DatasetModel):
    """A data set in a list."""

    id: str = Field(description="Identifier, used in paths and by jobs.")
    name: str = Field(description="Name given at upload; data only.")
    created_at: datetime = Field(description="When it was stored, UTC.")
    format: DatasetFormat = Field(description="Format of the upload.")
    sha256: str = Field(description="SHA-256 of the uploaded bytes, in hexadecimal.")
    size: int = Field(ge=0, description="Size of the upload, in bytes.")
    n_rows: int = Field(ge=1, description="Rows.")
    n_columns: int = Field(ge=1, description="Columns, each a variable.")
    has_ground_truth: bool = Field(description="Whether a true graph is attached.")


class DatasetRead(DatasetItem):
    """A data set."""

    summary: DatasetSummary = Field(description="What was read, how, and what is remarkable.")


class DatasetPage(DatasetModel):
    """Some data sets, newest first."""

    items: list[DatasetItem] = Field(description="Data sets, newest first.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last.")
