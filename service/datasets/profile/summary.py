"""Counts that describe a table, and the warnings that follow from them."""

import math
from collections import defaultdict
from functools import reduce
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from service.datasets.profile.column_warnings import column_warnings
from service.datasets.profile.table_warnings import table_warnings
from service.datasets.readers.parsed import ParsedTable
from service.datasets.readers.tokens import Token
from service.datasets.schemas import (
    CellToken,
    Change,
    ColumnPair,
    ColumnSummary,
    DatasetSummary,
)
from service.datasets.vocabulary import ChangeCode, TokenKind

_MOST_TOKENS = 50
_MOST_PAIRS = 100
# Bits of a signed 64-bit word that a pattern's columns are packed into.
_WORD_BITS = 63


def summarise(
    table: pa.Table, parsed: ParsedTable, first: int, changes: list[Change]
) -> DatasetSummary:
    """Return the description of `table`, made of `parsed`'s columns from number `first` on."""
    tokens: dict[int, list[tuple[Token, int]]] = defaultdict(list)
    for (number, token), count in parsed.ledger.tokens.most_common():
        tokens[number].append((token, count))
    arrays = [column.combine_chunks() for column in table.columns]
    units = parsed.units or [""] * len(parsed.names)
    columns = [
        _summarise_column(name, units[number] or None, array, tokens[number])
        for number, (name, array) in enumerate(zip(table.column_names, arrays, strict=True), first)
    ]
    observed = [array.is_valid() for array in arrays]
    pairs = _never_together(observed, [column.n_observed for column in columns])
    trimmed = {number - first: count for number, count in parsed.ledger.trimmed.items()}
    summary = DatasetSummary(
        n_rows=table.num_rows,
        n_columns=table.num_columns,
        n_observed=sum(column.n_observed for column in columns),
        n_missing=sum(column.n_missing for column in columns),
        n_censored=sum(column.n_censored for column in columns),
        n_unknown=sum(column.n_unknown for column in columns),
        n_patterns=_num_patterns(observed),
        n_complete_rows=pc.sum(reduce(pc.and_, observed)).as_py(),
        n_empty_rows=table.num_rows - pc.sum(reduce(pc.or_, observed)).as_py(),
        n_never_together=len(pairs),
        never_together=[
            ColumnPair(first=columns[i].name, second=columns[j].name)
            for i, j in islice(pairs, _MOST_PAIRS)
        ],
        columns=columns,
        encoding=parsed.encoding.name if parsed.encoding else None,
        encoding_detected=parsed.encoding.detected if parsed.encoding else False,
        csv_dialect=parsed.csv_dialect,
        json_layout=parsed.json_layout,
        changes=[*_encoding_changes(parsed), *changes, *_trimming(trimmed, table.column_names)],
        warnings=[],
    )
    large = [
        column.name
        for number, column in enumerate(columns, first)
        if parsed.ledger.large_integers[number]
    ]
    is_doubtful = parsed.encoding is not None and parsed.encoding.is_doubtful
    warnings = [
        *column_warnings(summary, arrays),
        *table_warnings(summary, arrays, large_integers=large, encoding_doubtful=is_doubtful),
    ]
    return summary.model_copy(update={"warnings": warnings})


def _summarise_column(
    name: str, unit: str | None, values: pa.Array, tokens: list[tuple[Token, int]]
) -> ColumnSummary:
    counts = dict.fromkeys(TokenKind, 0)
    for token, count in tokens:
        counts[token.kind] += count
    num_observed = len(values) - values.null_count
    bounds = pc.min_max(values).as_py()
    return ColumnSummary(
        name=name,
        unit=unit,
        n_observed=num_observed,
        n_missing=counts[TokenKind.MISSING],
        n_censored=counts[TokenKind.CENSORED],
        n_unknown=counts[TokenKind.UNKNOWN],
        n_zeros=pc.sum(pc.equal(values, 0.0)).as_py() or 0,
        n_negative=pc.sum(pc.less(values, 0.0)).as_py() or 0,
        minimum=bounds["min"],
        maximum=bounds["max"],
        mean=_mean(values, bounds["min"], bounds["max"]),
        is_constant=num_observed > 0 and bounds["min"] == bounds["max"],
        is_integer=num_observed > 0 and pc.all(pc.equal(pc.floor(values), values)).as_py(),
        tokens=[
            CellToken(
                kind=token.kind, text=token.text, count=count, lower=token.lower, upper=token.upper
            )
            for token, count in tokens[:_MOST_TOKENS]
        ],
    )


def _mean(values: pa.Array, minimum: float | None, maximum: float | None) -> float | None:
    if minimum is None or maximum is None:
        return None
    mean: float = pc.mean(values).as_py()
    if math.isfinite(mean):
        return mean
    # The sum of the largest doubles is infinite, their mean is not.
    scale = max(abs(minimum), abs(maximum))
    share: float = pc.mean(pc.divide(values, scale)).as_py()
    return min(max(share, minimum / scale), maximum / scale) * scale


def _num_patterns(observed: list[pa.Array]) -> int:
    """Return how many different rows the boolean columns have."""
    partial = [column for column in observed if not pc.all(column).as_py()]
    if not partial:
        return 1
    words = []
    for start in range(0, len(partial), _WORD_BITS):
        bits = [
            pc.shift_left(pc.cast(column, pa.int64()), bit)
            for bit, column in enumerate(partial[start : start + _WORD_BITS])
        ]
        words.append(reduce(pc.bit_wise_or, bits))
    keys = [f"word_{i}" for i in range(len(words))]
    num_patterns: int = (
        pa.table(words, keys).group_by(keys, use_threads=False).aggregate([]).num_rows
    )
    return num_patterns


def _never_together(observed: list[pa.Array], num_observed: list[int]) -> list[tuple[int, int]]:
    """Return the pairs of columns, each with an observed cell, that share no row."""
    num_rows = len(observed[0])
    masks = [_as_bits(column) for column in observed]
    # Two columns that together have more cells than there are rows must share one.
    return [
        (i, j)
        for i in range(len(masks))
        if num_observed[i]
        for j in range(i + 1, len(masks))
        if num_observed[j] and num_observed[i] + num_observed[j] <= num_rows
        if not masks[i] & masks[j]
    ]


def _as_bits(column: pa.Array) -> int:
    """Return a boolean column as one integer, a bit a row: Arrow packs the bits already."""
    bits: int = int.from_bytes(column.buffers()[1], "little") >> column.offset
    return bits & ((1 << len(column)) - 1)


def _encoding_changes(parsed: ParsedTable) -> list[Change]:
    if parsed.encoding is None or not parsed.encoding.has_mark:
        return []
    message = "The byte order mark is no part of the first name."
    return [Change(code=ChangeCode.BYTE_ORDER_MARK_SKIPPED, message=message, columns=[], count=1)]


def _trimming(trimmed: dict[int, int], names: list[str]) -> list[Change]:
    concerned = sorted(number for number in trimmed if number >= 0)
    if not concerned:
        return []
    return [
        Change(
            code=ChangeCode.CELLS_TRIMMED,
            message="Blanks around cells were left out.",
            columns=[names[number] for number in concerned],
            count=sum(trimmed[number] for number in concerned),
        )
    ]
