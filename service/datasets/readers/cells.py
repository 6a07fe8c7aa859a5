"""Texts to numbers, a whole block of columns at a time; what is no number is accounted for."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from service.datasets.readers.tokens import NUMBER_PATTERNS, Token, Vocabulary
from service.datasets.vocabulary import Decimal, TokenKind

# Cells that hold a bound or lie beyond one: `row` from 1, `column` by name; a bound that is not
# told is null, and with neither bound the cell is of kind `unknown`.
CELL_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("column", pa.string()),
        ("text", pa.string()),
        ("lower", pa.float64()),
        ("upper", pa.float64()),
    ]
)
# Beyond it not every whole number is a double.
LARGEST_EXACT_INTEGER = 2**53
_LONG_INTEGER = r"^[+-]?[0-9]{16,}$"
# Different texts of refused cells that are remembered; the answer names fewer.
_MOST_REFUSED = 1000


@dataclass
class Refused:
    """A text that cannot be read: where it stands first and how often it occurs."""

    column: int
    text: str
    row: int
    count: int = 1


class CellLedger:
    """Reads texts and remembers, by column number, every cell that is not simply a number."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.tokens: Counter[tuple[int, Token]] = Counter()
        self.refused: dict[tuple[int, str], Refused] = {}
        self.num_refused = 0
        self.trimmed: Counter[int] = Counter()
        self.large_integers: Counter[int] = Counter()
        # Column, row and token of each censored or unknown cell; a table may hold little else.
        self._censored: list[pa.Table] = []
        self._token_numbers: dict[Token, int] = {}
        # Of each column of labels, the number of every label.
        self.labels: dict[int, dict[str, int]] = {}

    @property
    def is_hopeless(self) -> bool:
        """Whether so many different texts were refused that reading on tells nothing new."""
        return len(self.refused) >= _MOST_REFUSED

    def read(self, texts: pa.Array, columns: range, first_row: int) -> list[pa.Array]:
        """Return one array of doubles a column, null where no number is known.

        `texts` holds the columns one after the other, equally long; a null text is passed over
        in silence. Rows are counted from `first_row` on, the first row of all being 1.
        """
        num_rows = len(texts) // len(columns)
        if not self.labels.keys().isdisjoint(columns):
            parts = (texts.slice(i * num_rows, num_rows) for i in range(len(columns)))
            texts = pa.concat_arrays(
                [
                    self._numbered(part, self.labels[column]) if column in self.labels else part
                    for part, column in zip(parts, columns, strict=True)
                ]
            )
        trimmed = pc.utf8_trim_whitespace(texts)
        self._count_trimmed(texts, trimmed, columns, num_rows)
        is_number = pc.match_substring_regex(trimmed, NUMBER_PATTERNS[self.vocabulary.decimal])
        numbers = pc.if_else(is_number, trimmed, pa.scalar(None, pa.string()))
        if self.vocabulary.decimal is Decimal.COMMA:
            numbers = pc.replace_substring(numbers, ",", ".")
        values = pc.cast(numbers, pa.float64())
        values = self._mask_numbers(values, trimmed, columns, num_rows, first_row)
        others = pc.and_(pc.is_valid(trimmed), pc.invert(is_number))
        self._record_others(trimmed, others, columns, num_rows, first_row)
        return [values.slice(i * num_rows, num_rows) for i in range(len(columns))]

    def take_numbers(self, values: pa.Array, column: int, first_row: int) -> pa.Array:
        """Return typed numbers of a column without NaN and what stands for missing.

        Infinite values are refused; nulls are left to the caller to count. Rows are counted from
        `first_row` on.
        """
        is_nan = pc.is_nan(values)
        self.count_missing(column, "NaN", pc.sum(is_nan).as_py() or 0)
        for position in _positions(pc.is_inf(values)):
            self.refuse(column, f"{values[position].as_py()}", first_row + position)
        gone = is_nan
        for number in self.vocabulary.na_numbers:
            hits = pc.equal(values, number)
            self.count_missing(column, f"{number:.17g}", pc.sum(hits).as_py() or 0)
            gone = pc.or_(gone, hits)
        return pc.if_else(gone, pa.scalar(None, pa.float64()), values)

    def count_missing(self, column: int, text: str, count: int) -> None:
        """Account for gaps that are no text in the upload, such as a null."""
        if count:
            self.tokens[column, Token(TokenKind.MISSING, text)] += count

    def refuse(self, column: int, text: str, row: int, count: int = 1) -> None:
        """Account for cells that cannot be read, the first of them in `row`."""
        self.num_refused += count
        known = self.refused.get((column, text))
        if known:
            known.count += count
        elif not self.is_hopeless:
            self.refused[column, text] = Refused(column, text, row, count)

    def cells(self, names: list[str]) -> pa.Table:
        """Return the censored and unknown cells, as they were read; `names` of all columns."""
        if not self._censored:
            return CELL_SCHEMA.empty_table()
        tokens = list(self._token_numbers)
        cells = pa.concat_tables(self._censored)
        return pa.table(
            [
                cells["row"],
                pa.array(names, pa.string()).take(cells["column"]),
                pa.array([token.text for token in tokens], pa.string()).take(cells["token"]),
                pa.array([token.lower for token in tokens], pa.float64()).take(cells["token"]),
                pa.array([token.upper for token in tokens], pa.float64()).take(cells["token"]),
            ],
            schema=CELL_SCHEMA,
        )

    def _numbered(self, texts: pa.Array, numbers: dict[str, int]) -> pa.Array:
        """Return labels as the digits of their numbers; what means missing stays as it is."""
        encoded = pc.utf8_trim_whitespace(texts).dictionary_encode()
        digits = []
        for label in encoded.dictionary.to_pylist():
            token = self._token_or_none(label)
            if token is not None and token.kind is TokenKind.MISSING:
                digits.append(label)
                continue
            if label not in numbers:
                # Numbers that stand for missing are none of a label's.
                last = next(reversed(numbers.values()), -1)
                free = itertools.count(last + 1)
                numbers[label] = next(n for n in free if n not in self.vocabulary.na_numbers)
            digits.append(str(numbers[label]))
        return pa.array(digits, pa.string()).take(encoded.indices)

    def _mask_numbers(
        self, values: pa.Array, texts: pa.Array, columns: range, num_rows: int, first_row: int
    ) -> pa.Array:
        """Set numbers that stand for missing to null; refuse infinity, note large integers."""
        if self.vocabulary.na_numbers:
            stands_for_missing = pc.is_in(values, pa.array(self.vocabulary.na_numbers))
            self._record_others(texts, stands_for_missing, columns, num_rows, first_row)
            values = pc.if_else(stands_for_missing, pa.scalar(None, pa.float64()), values)
        largest = pc.max(pc.abs(values)).as_py() or 0.0
        if largest >= LARGEST_EXACT_INTEGER:
            for position in _positions(pc.is_inf(values)):
                column, row = divmod(position, num_rows)
                self.refuse(columns[column], texts[position].as_py(), first_row + row)
            is_large = pc.greater_equal(pc.abs(values), float(LARGEST_EXACT_INTEGER))
            is_large = pc.and_(is_large, pc.match_substring_regex(texts, _LONG_INTEGER))
            self.large_integers.update(columns[p // num_rows] for p in _positions(is_large))
        return values

    def _record_others(
        self, texts: pa.Array, selected: pa.Array, columns: range, num_rows: int, first_row: int
    ) -> None:
        """Account for the selected cells, one different text of a column at a time."""
        encoded = texts.filter(selected).dictionary_encode()
        words = encoded.dictionary.to_pylist()
        tokens = [self._token_or_none(word) for word in words]
        positions = pc.cast(pc.indices_nonzero(selected), pa.int64())
        column = pc.divide(positions, max(num_rows, 1))
        row = pc.add(pc.subtract(positions, pc.multiply(column, num_rows)), first_row)
        column = pc.add(column, columns.start)
        cells = pa.table([column, row, encoded.indices], ["column", "row", "token"])
        groups = cells.group_by(["column", "token"], use_threads=False).aggregate(
            [("row", "min"), ("row", "count")]
        )
        for number, index, first, count in zip(
            *(groups[name].to_pylist() for name in ("column", "token", "row_min", "row_count")),
            strict=True,
        ):
            token = tokens[index]
            if token:
                self.tokens[number, token] += count
            else:
                self.refuse(number, words[index], first, count)
        self._keep_censored(cells, tokens)

    def _keep_censored(self, cells: pa.Table, tokens: list[Token | None]) -> None:
        numbers = [
            self._token_numbers.setdefault(token, len(self._token_numbers))
            if token and token.kind is not TokenKind.MISSING
            else None
            for token in tokens
        ]
        if any(number is not None for number in numbers):
            renumbered = pa.array(numbers, pa.int32()).take(cells["token"])
            kept = cells.set_column(2, "token", renumbered)
            self._censored.append(kept.filter(pc.is_valid(kept["token"])))

    def _token_or_none(self, text: str) -> Token | None:
        token = self.vocabulary.token(text)
        if token is None and self.vocabulary.is_missing_number(text):
            return Token(TokenKind.MISSING, text)
        return token

    def _count_trimmed(
        self, texts: pa.Array, trimmed: pa.Array, columns: range, num_rows: int
    ) -> None:
        shorter = pc.less(pc.binary_length(trimmed), pc.binary_length(texts))
        is_padded = pc.and_(shorter, pc.greater(pc.binary_length(trimmed), 0))
        self.trimmed.update(columns[position // num_rows] for position in _positions(is_padded))


def _positions(selected: pa.Array) -> Iterator[int]:
    yield from pc.indices_nonzero(selected).to_pylist()
