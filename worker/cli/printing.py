"""How things look on the terminal: errors with their places, tables, JSON for programs."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.http.problems import Problem, ProblemItem
from service.http.words import counted, visible
from service.results.edges import Edge
from worker.artefacts.ground_truth import Pair, pair
from worker.cli.client import JsonObject
from worker.cli.flag_names import flag_at, flag_of, in_flags

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


def print_page(
    page: JsonObject,
    headings: Sequence[str],
    row: Callable[[JsonObject], Sequence[object]],
    *,
    as_json: bool,
) -> None:
    """Print a page of things, a `row` each, and how to have the next one; or its document."""
    if as_json:
        print_json(page)
        return
    OUT.print(listing(headings, map(row, page["items"])))
    if page["next_cursor"]:
        OUT.print(f"More: --cursor {page['next_cursor']}", markup=False, highlight=False)


def print_problem(problem: Problem) -> None:
    """Print what went wrong and where, on standard error."""
    ERR.print(f"[bold red]{escape(problem.title)}[/] ({problem.code})")
    ERR.print(in_flags(problem.detail), markup=False, highlight=False)
    for item in problem.errors:
        ERR.print(f"  • {_place(item)}{in_flags(item.message)}", markup=False, highlight=False)
    if problem.request_id:
        ERR.print(f"[dim]request {problem.request_id}[/]", highlight=False)


def print_error(message: str) -> None:
    """Print one line of error on standard error."""
    ERR.print("[bold red]Error:[/] " + escape(message), highlight=False)


def print_ending(console: Console, has_converged: bool, message: str) -> None:
    """Print how a fit ended."""
    ending = "[green]converged[/]" if has_converged else "[bold red]not converged[/]"
    console.print(f"{ending}: {escape(in_flags(message))}", highlight=False)


def print_warnings(console: Console, warnings: Iterable[JsonObject]) -> None:
    """Print the warnings of a result, a line a kind."""
    for code, line in one_a_kind(warnings):
        console.print(f"[yellow]warning[/] {escape(line)} \\[{code}]", highlight=False)


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
        yield code, in_flags(line)


def _names(message: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", message) is not None


def _place(item: ProblemItem) -> str:
    parts = [
        f"column {item.column!r}" if item.column is not None else "",
        f"row {item.row}" if item.row is not None else "",
        f"line {item.line}" if item.line is not None else "",
        f"cell {item.cell!r}" if item.cell is not None else "",
        counted(item.count, "cell") if item.count is not None else "",
        flag_at(item.pointer or ""),
        flag_of(item.parameter) if item.parameter is not None else "",
    ]
    place = ", ".join(part for part in parts if part)
    return f"{place}: " if place else ""


def edge_table(edges: Sequence[Edge], truth: frozenset[Pair] | None, title: str) -> Table:
    """Return ranked edges as a table; `rows` counts those in which both variables are observed.

    Where edges have intervals it has those, q-values and verdicts. With a true graph it says which
    edges are in it. Where there are no partial correlations the scaled interactions stand in a
    column of their own name.
    """
    are_correlations = all(edge.partial_correlation is not None for edge in edges)
    are_judged = any(edge.verdict is not None for edge in edges)
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("edge", no_wrap=True)
    measure = "partial corr." if are_correlations else "scaled interaction"
    table.add_column(measure, justify="right", no_wrap=True)
    if are_judged:
        table.add_column("95 % interval", justify="center", no_wrap=True)
        table.add_column("q", justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
    else:
        table.add_column("K", justify="right", no_wrap=True)
        table.add_column("selected")
    table.add_column("rows", justify="right")
    if truth is not None:
        table.add_column("true")
    for rank, edge in enumerate(edges, start=1):
        cells = [
            str(rank),
            escape(visible(f"{edge.source} – {edge.target}")),
            f"{edge.scaled_interaction:+.3f}",
            *(_judgement(edge) if are_judged else _size(edge)),
            str(edge.n_pairwise),
        ]
        if truth is not None:
            cells.append("yes" if pair(edge.source, edge.target) in truth else "no")
        table.add_row(*cells)
    return table


def _judgement(edge: Edge) -> tuple[str, str, str]:
    """Return an edge's interval, q-value and verdict."""
    if edge.lower is None or edge.upper is None or edge.q_value is None:
        return "", "", edge.verdict or ""
    q_value = f"{edge.q_value:.3f}" if edge.q_value >= 5e-4 else f"{edge.q_value:.0e}"
    return f"{edge.lower:+.3f} to {edge.upper:+.3f}", q_value, edge.verdict or ""


def _size(edge: Edge) -> tuple[str, str]:
    return f"{edge.precision:+.4g}", "yes" if edge.selected else "no"


def time_text(moment: str | None) -> str:
    """Return a time of the service to the minute, as the clocks here show it; empty for none."""
    if moment is None:
        return ""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def listing(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a plain table; the first column, an identifier, is never cut."""
    texts = [[_cell(value) for value in row] for row in rows]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    longest = max((len(row[0]) for row in texts), default=0)
    table.add_column(headings[0], no_wrap=True, min_width=longest)
    for heading in headings[1:]:
        table.add_column(heading)
    for row in texts:
        table.add_row(*map(escape, row))
    return table


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))
