"""The vocabulary of cells: which texts are numbers, gaps, bounds, or none of these."""

import re
from dataclasses import dataclass
from math import isfinite
from typing import Self

from service.datasets.options import ReadOptions
from service.datasets.vocabulary import Decimal, TokenKind

# Compared in lower case. Spellings that may mean something else in some field (".", "-", "?",
# "missing") are left to `na_values`.
MISSING_TEXTS = frozenset({"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none"})
# Below a limit of detection or quantification, or above the measuring range, by an unstated bound.
UNKNOWN_TEXTS = frozenset(
    {
        *("nd", "n.d.", "n.d", "n/d", "not detected", "bdl", "b.d.l.", "bld", "below detection"),
        *("below detection limit", "bql", "blq", "bloq", "lod", "loq", "mdl", "<lod", "<loq"),
        *("<mdl", "<dl", "<lloq", "lloq", "uloq", ">uloq", ">loq", "aql", "alq"),
    }
)
_UNSIGNED = {
    Decimal.POINT: r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    Decimal.COMMA: r"(?:[0-9]+(?:,[0-9]*)?|,[0-9]+)(?:[eE][+-]?[0-9]+)?",
}
# An optional sign, digits with one decimal mark, an optional exponent, and nothing else; both for
# Python's `re` and for Arrow's RE2.
NUMBER_PATTERNS = {mark: rf"^[+-]?{unsigned}$" for mark, unsigned in _UNSIGNED.items()}
_NUMBERS = {mark: re.compile(pattern) for mark, pattern in NUMBER_PATTERNS.items()}
_BOUNDS = {
    mark: re.compile(rf"(<=|>=|<|>|≤|≥|=<|=>)\s*([+-]?{unsigned})")
    for mark, unsigned in _UNSIGNED.items()
}


@dataclass(frozen=True)
class Token:
    """A text that stands for no number, and the bounds that it tells."""

    kind: TokenKind
    text: str
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Vocabulary:
    """How texts are understood in one upload."""

    decimal: Decimal
    na_texts: frozenset[str]
    na_numbers: frozenset[float]

    @classmethod
    def of(cls, options: ReadOptions, decimal: Decimal = Decimal.POINT) -> Self:
        """Return the known vocabulary together with the client's `na_values`."""
        texts = [value.strip().lower() for value in options.na_values]
        numbers = (parse_number(text, mark) for text in texts for mark in (Decimal.POINT, decimal))
        return cls(
            decimal, MISSING_TEXTS | set(texts), frozenset(n for n in numbers if n is not None)
        )

    def is_readable(self, text: str) -> bool:
        """Whether the trimmed text is a number or a token."""
        return parse_number(text, self.decimal) is not None or self.token(text) is not None

    def is_missing_number(self, text: str) -> bool:
        """Whether the trimmed text is a number that the client said stands for missing."""
        return parse_number(text, self.decimal) in self.na_numbers

    def token(self, text: str) -> Token | None:
        """Return what a trimmed text says, or None if it is a number or nothing known."""
        folded = text.lower()
        if folded in self.na_texts:
            return Token(TokenKind.MISSING, text)
        if folded.replace(" ", "") in UNKNOWN_TEXTS or folded in UNKNOWN_TEXTS:
            return Token(TokenKind.UNKNOWN, text)
        bound = _BOUNDS[self.decimal].fullmatch(text)
        limit = parse_number(bound[2], self.decimal) if bound else None
        if bound is None or limit is None:
            return None
        if "<" in bound[1] or bound[1] == "≤":
            return Token(TokenKind.CENSORED, text, upper=limit)
        return Token(TokenKind.CENSORED, text, lower=limit)


def parse_number(text: str, decimal: Decimal) -> float | None:
    """Return the double nearest to a text, or None if it is not a finite number."""
    if not _NUMBERS[decimal].match(text):
        return None
    number = float(text.replace(decimal, "."))
    return number if isfinite(number) else None


_HINTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[+-]?(inf|infinity|∞|1\.#inf)", re.I), "infinite values are not data"),
    (re.compile(r"\S*[−–—]\S*"), "a typographic minus or dash is not a sign; use the hyphen -"),
    (re.compile(r"[+-]?[0-9.,]+\s*%"), "percent signs are not read; write the number alone"),
    (re.compile(r"0[xX][0-9a-fA-F]+"), "hexadecimal numbers are not read"),
    (re.compile(r"[+-]?\d{1,3}([\s'’  ]\d{3})+.*"), "digits may not be grouped"),
    (re.compile(r"[+-]?\d+[.,]\d{3}([.,]\d+)+"), "digits may not be grouped"),
    (re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?"), "if the comma is a decimal mark, set `decimal=,`"),
    (
        re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?"),
        "if the point is a decimal mark, set `decimal=.`",
    ),
    (re.compile(r"true|false", re.I), "write truth values as 1 and 0"),
    (re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}.*"), "dates are not numbers"),
    (re.compile(r"\".*\""), "quotes must begin right after the delimiter"),
    (re.compile(r"#\S+[!?]"), "a spreadsheet's error value; add it to `na_values` if it is a gap"),
    (re.compile(r".*\S\s+\S.*"), "if blanks separate the cells, set `delimiter=space`"),
)


def hint(text: str) -> str:
    """Return what is likely wrong with a text that was refused; empty if nothing comes to mind."""
    if parse_number(text, Decimal.POINT) is None and _NUMBERS[Decimal.POINT].match(text):
        return "the number is too large for a double"
    return next((advice for pattern, advice in _HINTS if pattern.fullmatch(text)), "")
