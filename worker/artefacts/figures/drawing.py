"""What all figures share: their look, the text they may hold, and how they become files."""

import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from itertools import accumulate, dropwhile, takewhile
from typing import Final, TypeAlias

from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from service.results.formats import MediaType
from service.results.outcome import Artefact

# Okabe and Ito's colours: told apart by every common kind of colour vision, and in grey print.
POSITIVE: Final = "#0072B2"
NEGATIVE: Final = "#D55E00"
SERIES: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
INK: Final = "#222222"
QUIET: Final = "#6E6E6E"
PALE: Final = "#A8A8A8"
FAINT: Final = "#D9D9D9"

Draw: TypeAlias = Callable[[Figure], None]

# By their endings.
FORMATS: Final = {"svg": MediaType.SVG, "pdf": MediaType.PDF, "png": MediaType.PNG}
_PNG_DOTS_PER_INCH: Final = 150

FONT_POINTS: Final = 9.0
_STYLE: Final = {
    # Text stays text: it can be searched and edited, and a viewer's own fonts show the scripts
    # that the font used for measuring does not have.
    "svg.fonttype": "none",
    # Without a salt, matplotlib names the clip paths by random numbers.
    "svg.hashsalt": "vnce",
    # Text of a PDF file can be searched too.
    "pdf.fonttype": 42,
    # A column named `$x$` is a name and no formula.
    "text.parse_math": False,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    # Its signs say no more than a plain box, and take a third of a second a PDF file to embed.
    "font.enable_last_resort": False,
    "font.size": FONT_POINTS,
    "text.color": INK,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": FONT_POINTS,
}
_MAX_LABEL_COLUMNS: Final = 24
_END_SHARE: Final = 0.4
_PADDING_INCHES: Final = 0.15
_LEGEND_GAP_INCHES: Final = 0.25
POINTS_PER_INCH: Final = 72
# Of a letter or digit of the fonts above, on average over any but the shortest text.
_WIDTH_EM: Final = 0.62
# The measuring font's sign for a missing glyph is 0.6 em wide, an ideograph or emoji is 1 em.
_WIDE_GLYPH_EXCESS_EM: Final = 0.4


def figure_artefacts(name: str, draw: Draw) -> list[Artefact]:
    """Return the figure that `draw` makes as `figures/NAME`.svg, .pdf and .png."""
    return [
        Artefact(f"figures/{name}.{ending}", FORMATS[ending], content)
        for ending, content in render(draw).items()
    ]


def render(draw: Draw, endings: Iterable[str] = tuple(FORMATS)) -> dict[str, bytes]:
    """Return the figure that `draw` makes by the endings of files; the same gives the same bytes.

    The page grows to hold everything drawn. Neither matplotlib's global state nor a user's
    `matplotlibrc` takes part.
    """
    with style.context(_STYLE, after_reset=True), warnings.catch_warnings():
        # Expected for scripts that the measuring font lacks; see `svg.fonttype` above.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* nativ")
        figure = Figure()
        draw(figure)
        padding = _PADDING_INCHES + _wide_text_inches(figure)
        return {ending: _save(figure, ending, padding) for ending in endings}


def _save(figure: Figure, file_format: str, padding_inches: float) -> bytes:
    # No date: a file of PNG names neither that nor a creator.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(file_format)
    content = BytesIO()
    figure.savefig(
        content,
        format=file_format,
        dpi=_PNG_DOTS_PER_INCH,
        bbox_inches="tight",
        pad_inches=padding_inches,
        metadata=metadata and metadata | {"Creator": "vnce"},
    )
    return content.getvalue()


def label(name: str, most_columns: int = _MAX_LABEL_COLUMNS) -> str:
    """Return a name as one printable line of bounded width, with an ellipsis for what is cut.

    Its end is kept: names of one table often begin alike. Ideographs and emoji have two columns.
    """
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    if _columns(printable) <= most_columns:
        return printable
    end = _beginning(printable[::-1], int(_END_SHARE * most_columns))[::-1]
    # An accent whose letter was cut would stand on the ellipsis.
    end = "".join(dropwhile(unicodedata.combining, end)).lstrip()
    start = _beginning(printable, most_columns - 1 - _columns(end))
    return f"{start.rstrip()}…{end}"


def _beginning(text: str, most_columns: int) -> str:
    """Return as much of a text as has so many columns."""
    ends = accumulate(map(_columns, text))
    return text[: sum(1 for _ in takewhile(lambda end: end <= most_columns, ends))]


def add_title(figure: Figure, title: str, subtitle: str) -> None:
    """Write above everything drawn so far a title and what the reader must know to read it."""
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    x, y = drawn.x0 / width, drawn.y1 / height
    line = 1.3 * FONT_POINTS / POINTS_PER_INCH / height
    num_lines = 1 + subtitle.count("\n")
    figure.text(x, y + line, subtitle, color=QUIET, linespacing=1.3, va="bottom")
    figure.text(x, y + (1.4 + num_lines) * line, title, fontsize=12, weight="bold", va="bottom")


def add_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Put a legend to the right of everything drawn so far, so that it covers nothing."""
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    corner = ((drawn.x1 + _LEGEND_GAP_INCHES) / width, drawn.y1 / height)
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=corner, borderaxespad=0, handlelength=3
    )


def text_inches(text: str, font_points: float) -> float:
    """Return a width that `text`, a line, hardly ever exceeds."""
    return _columns(text) * _WIDTH_EM * font_points / POINTS_PER_INCH


def _columns(text: str) -> int:
    """Return the width of `text` on a terminal: ideographs and emoji count twice."""
    return sum(0 if unicodedata.combining(c) else 1 + _is_wide(c) for c in text)


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _wide_text_inches(figure: Figure) -> float:
    """Return how much longer a viewer may draw the longest text than it was measured here."""
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    ticks = [t.get_text() for axes in figure.axes for t in axes.get_xticklabels()]
    num_wide = max((sum(map(_is_wide, text)) for text in texts + ticks), default=0)
    return num_wide * _WIDE_GLYPH_EXCESS_EM * FONT_POINTS / POINTS_PER_INCH
