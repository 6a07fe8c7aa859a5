"""What a client may say about its upload, and what the operator allows."""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from service.datasets.vocabulary import Decimal, Encoding, RequestedFormat
from service.settings import Settings

DELIMITER_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
DELIMITERS = (*DELIMITER_NAMES.values(), ":")


def _read_delimiter(value: str) -> str:
    delimiter = DELIMITER_NAMES.get(value.lower(), value)
    if delimiter not in DELIMITERS:
        allowed = ", ".join((*DELIMITER_NAMES, ":"))
        raise ValueError(f"must be one of {allowed}, or the character itself")
    return delimiter


class ReadOptions(BaseModel):
    """How to read an upload; whatever is left out is found out and stated in the answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: RequestedFormat = Field(
        default=RequestedFormat.AUTO,
        description="Format of the file; `auto` lets its content decide. The Content-Type is not "
        "looked at, since browsers and spreadsheets label files as they please.",
    )
    delimiter: Annotated[str, AfterValidator(_read_delimiter)] | None = Field(
        default=None,
        description="CSV: character between cells, `,` `;` `|` `:` or a word: comma, semicolon, "
        "tab, pipe, space; left out: found out.",
    )
    decimal: Decimal | None = Field(
        default=None, description="CSV: decimal mark, `.` or `,`; left out: found out."
    )
    encoding: Encoding | None = Field(
        default=None,
        description="CSV and JSON: character encoding; left out: UTF-8, or what the byte order "
        "mark says.",
    )
    skip_rows: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="CSV: lines above the header that are skipped, blank ones counted.",
    )
    units_row: bool = Field(default=False, description="CSV: the row below the header holds units.")
    na_values: list[str] = Field(
        default=[],
        max_length=100,
        description="Texts that mean missing besides the known ones, upper or lower case alike; "
        "numbers too: -999 also stands for -999.0.",
    )
    labels: list[str] = Field(
        default=[],
        max_length=100,
        description="Columns of labels, such as of patients or plates: equal texts in them become "
        "equal whole numbers, for a job's `cluster` or `by`.",
    )


@dataclass(frozen=True)
class ReadLimits:
    """The largest table that is read."""

    max_cells: int
    max_columns: int
    max_name_length: int
    # What a Parquet file says that it unfolds to.
    max_decoded_bytes: int

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the limits that the operator has set."""
        return cls(
            settings.max_cells,
            settings.max_columns,
            settings.max_name_length,
            settings.max_decoded_bytes,
        )
