"""How things look on the terminal: errors with their places, tables, JSON for programs."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.http.problems import Problem, ProblemItem
from service.http.words import visible
from service.results.edges import Edge
from worker.artefacts.ground_truth import Pair, pair
from worker.cli.client import JsonObject

# Where there is no terminal nothing needs to be cut to its width.
_WIDTH_WITHOUT_TERMINAL = 160


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr)
    if not console.is_terminal:
        console.width = _WIDTH_WITHOUT_TERMINAL
    return console


OUT = _console(stderr=False)
ERR = _console(stderr=True)


def to_json(document: JsonObject) -> str:
    """Return a document as strict JSON with two spaces of indentation, keys as they came."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def print_json(document: JsonObject) -> None:
    """Print a document for programs, and nothing else, on standard output."""
    OUT.file.write(to_json(document))


def print_problem(problem: Problem) -> None:
    """Print what went wrong and where, on standard error."""
    ERR.print(f"[bold red]{escape(problem.title)}[/] ({problem.code})")
    ERR.print(problem.detail, markup=False, highlight=False)
    for item in problem.errors:
        ERR.print(f"  • {_place(item)}{item.message}", markup=False, highlight=False)
    if problem.request_id:
        ERR.print(f"[dim]request {problem.request_id}[/]", highlight=False)


def print_error(message: str) -> None:
    """Print one line of error on standard error."""
    ERR.print("[bold red]Error:[/] " + escape(message), highlight=False)


def one_a_kind(remarks: Iterable[JsonObject]) -> Iterator[tuple[str, str]]:
    """Yield the code of each kind of warning or change, and one line for all of that kind.

    The first is told in full, with its columns where it does not name them; of others the columns,
    or how many there are.
    """
    kinds: dict[str, list[JsonObject]] = {}
    for remark in remarks:
        kinds.setdefault(remark["code"], []).append(remark)
    for code, (first, *others) in kinds.items():
        line = first["message"]
        if first["columns"] and not any(_names(line, column) for column in first["columns"]):
            line += f" ({', '.join(first['columns'])})"
        if others:
            columns = dict.fromkeys(column for other in others for column in other["columns"])
            more = f"likewise {', '.join(columns)}" if columns else f"{len(others)} more like it"
            line = f"{line.rstrip('.')}; {more}."
        yield code, line


def _names(message: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", message) is not None


def _place(item: ProblemItem) -> str:
    parts = [
        f"column {item.column!r}" if item.column is not None else "",
        f"row {item.row}" if item.row is not None else "",
        f"line {item.line}" if item.line is not None else "",
        f"cell {item.cell!r}" if item.cell is not None else "",
        f"{item.count} cells" if item.count is not None else "",
        item.pointer or "",
        f"parameter {item.parameter}" if item.parameter is not None else "",
    ]
    place = ", ".join(part for part in parts if part)
    return f"{place}: " if place else ""


def edge_table(edges: Sequence[Edge], truth: frozenset[Pair] | None, title: str) -> Table:
    """Return ranked edges as a table; `rows` counts those in which both variables are observed.

    With a true graph the table says which edges are in it. Where there are no partial correlations
    the scaled interactions stand in a column of their own name.
    """
    are_correlations = all(edge.partial_correlation is not None for edge in edges)
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("edge", no_wrap=True)
    measure = "partial corr." if are_correlations else "scaled interaction"
    table.add_column(measure, justify="right", no_wrap=True)
    table.add_column("K", justify="right", no_wrap=True)
    table.add_column("rows", justify="right")
    table.add_column("selected")
    if truth is not None:
        table.add_column("true")
    for rank, edge in enumerate(edges, start=1):
        cells = [
            str(rank),
            escape(f"{edge.source} – {edge.target}"),
            f"{edge.scaled_interaction:+.3f}",
            f"{edge.precision:+.4g}",
            str(edge.n_pairwise),
            "yes" if edge.selected else "no",
        ]
        if truth is not None:
            cells.append("yes" if pair(edge.source, edge.target) in truth else "no")
        table.add_row(*cells)
    return table


def listing(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a plain table of texts; the first column, an identifier, is never cut."""
    texts = [["" if value is None else visible(str(value)) for value in row] for row in rows]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    longest = max((len(row[0]) for row in texts), default=0)
    table.add_column(headings[0], no_wrap=True, min_width=longest)
    for heading in headings[1:]:
        table.add_column(heading)
    for row in texts:
        table.add_row(*map(escape, row))
    return table
