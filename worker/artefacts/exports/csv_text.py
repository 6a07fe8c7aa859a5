"""CSV text that is exact for numbers and harmless in spreadsheets."""

import csv
import re
from collections.abc import Iterable, Sequence

# Where a cell may begin: with the text, and wherever a spreadsheet that knows of other delimiters,
# or of no quotes within a line, would split it. Then what spreadsheets take for the start of a
# formula, in full width too, with what they skip before it (a doubled quote reads as an empty
# text), or the apostrophe that undoes it.
_BEFORE_FORMULA = re.compile(r"(?:^|(?<=[;\t\r\n]))(?=[ \"]*[=+\-@＝＋－＠\t\r\n]|')")


def safe_name(name: str) -> str:
    """Return a name that no spreadsheet runs as a formula: an apostrophe goes before it.

    So it does before a formula after a semicolon, a tab or a line end: where these part cells, it
    would be a cell of its own. An apostrophe that stands there itself gets another one, so that
    removing one apostrophe from each of these places always gives the name back.
    """
    return _BEFORE_FORMULA.sub("'", name)


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[str | float | bool | None]]) -> bytes:
    """Return UTF-8 CSV with the shortest digits that give each number back exactly.

    Text is made safe by `safe_name`; numbers, negative ones too, are left alone; None becomes an
    empty field, a bool `true` or `false`.
    """
    lines = _Lines()
    writer = csv.writer(lines)
    writer.writerow([safe_name(name) for name in header])
    writer.writerows([_field(value) for value in row] for row in rows)
    return "".join(lines).encode()


class _Lines(list[str]):
    """Ends lines by a line feed alone.

    Of line ends inside a name the writer quotes those only that it ends its own lines by.
    """

    def write(self, line: str) -> None:
        """Add a line that ends in a carriage return and a line feed."""
        self.append(line.removesuffix("\r\n") + "\n")


def _field(value: str | float | bool | None) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return safe_name(value)
        case float():
            return float.__repr__(value)  # NumPy's own floats name their type
        case _:
            return str(value)
