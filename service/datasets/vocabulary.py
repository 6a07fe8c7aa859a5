"""Closed sets of words about data sets."""

from enum import StrEnum


class DatasetFormat(StrEnum):
    """What an upload turned out to be."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"


# As messages and helps list them.
FORMATS = "CSV, JSON, Parquet or Arrow"


class RequestedFormat(StrEnum):
    """What the client says an upload is; `auto` lets its content decide."""

    AUTO = "auto"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"


class Decimal(StrEnum):
    """Decimal mark of numbers written as text."""

    POINT = "."
    COMMA = ","


class Encoding(StrEnum):
    """Character encodings that an upload may be declared to have."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_16_LE = "utf-16-le"
    UTF_16_BE = "utf-16-be"
    UTF_32 = "utf-32"
    CP1250 = "cp1250"
    CP1251 = "cp1251"
    CP1252 = "cp1252"
    LATIN_1 = "iso-8859-1"
    LATIN_2 = "iso-8859-2"
    LATIN_9 = "iso-8859-15"
    MAC_ROMAN = "mac-roman"
    SHIFT_JIS = "shift_jis"
    EUC_JP = "euc_jp"
    EUC_KR = "euc_kr"
    BIG5 = "big5"
    GB18030 = "gb18030"


class JsonLayout(StrEnum):
    """How a JSON upload holds the table."""

    RECORDS = "records"  # [{"a": 1, "b": 2}, ...]
    COLUMNS = "columns"  # {"a": [1, ...], "b": [2, ...]}
    SPLIT = "split"  # {"columns": ["a", "b"], "data": [[1, 2], ...]}


class TokenKind(StrEnum):
    """What a cell is that holds no number."""

    MISSING = "missing"  # nothing is known: blank, NA, null, ...
    CENSORED = "censored"  # a bound is known: <0.5, >100
    UNKNOWN = "unknown"  # outside what could be measured, by an unstated bound: ND, <LOD


class ChangeCode(StrEnum):
    """What was done to the upload on its way to a table of numbers; nothing else is."""

    BYTE_ORDER_MARK_SKIPPED = "byte-order-mark-skipped"
    LINES_SKIPPED = "lines-skipped"
    SEPARATOR_LINE_SKIPPED = "separator-line-skipped"
    UNITS_ROW_SKIPPED = "units-row-skipped"
    BLANK_LINES_IGNORED = "blank-lines-ignored"
    NAMES_TRIMMED = "names-trimmed"
    NAMES_NORMALISED = "names-normalised"
    INDEX_COLUMN_EXCLUDED = "index-column-excluded"
    CELLS_TRIMMED = "cells-trimmed"
    KEYS_ABSENT = "keys-absent"
    TEXT_READ_AS_NUMBERS = "text-read-as-numbers"
    BOOLEANS_READ_AS_NUMBERS = "booleans-read-as-numbers"
    ROUNDED_TO_DOUBLE = "rounded-to-double"
    LABELS_NUMBERED = "labels-numbered"


class WarningCode(StrEnum):
    """What is worth knowing about a table before a model is fitted to it."""

    SINGLE_COLUMN = "single-column"
    NO_OBSERVED_VALUE = "no-observed-value"
    CONSTANT = "constant"
    NEARLY_CONSTANT = "nearly-constant"
    DUPLICATE_COLUMNS = "duplicate-columns"
    LINEARLY_DEPENDENT = "linearly-dependent"  # in old data sets; now a result says it
    NEGATIVE_VALUES = "negative-values"
    SENTINEL_LIKE = "sentinel-like"
    OUTLIERS = "outliers"
    COUNTS = "counts"
    MANY_ZEROS = "many-zeros"
    ROW_NUMBERS = "row-numbers"
    NAMES_ARE_NUMBERS = "names-are-numbers"
    CENSORED_CELLS = "censored-cells"
    UNKNOWN_CELLS = "unknown-cells"
    EMPTY_ROWS = "empty-rows"
    NEVER_TOGETHER = "never-together"
    LARGE_INTEGERS = "large-integers"
    LOOKS_LIKE_CORRELATIONS = "looks-like-correlations"
    LOOKS_LIKE_SQUARE_MATRIX = "looks-like-square-matrix"
    ENCODING_DOUBTFUL = "encoding-doubtful"
