"""A file that holds a true graph, as the document that the service takes."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path

import typer

from worker.cli.client import JsonObject


def edges_document(pairs: Iterable[tuple[str, str]]) -> JsonObject:
    """Return the document of an undirected graph, from its edges."""
    edges = [{"source": source, "target": target} for source, target in pairs]
    return {"kind": "edges", "edges": edges}


def read_truth_file(path: Path) -> JsonObject:
    """Return the document in a .json file, or of the edges in a CSV file with a header.

    Raises `typer.BadParameter` with the line where a file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path} is no UTF-8 text: {error}") from error
    if path.suffix.lower() == ".json":
        return _json_document(path, text)
    return edges_document(_csv_edges(path, text))


def _json_document(path: Path, text: str) -> JsonObject:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"{path} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise typer.BadParameter(
            f'{path} must hold an object: {{"kind": "edges", "edges": [...]}} or '
            '{"kind": "adjacency", "matrix": [...]}'
        )
    return document


def _csv_edges(path: Path, text: str) -> list[tuple[str, str]]:
    lines = csv.reader(text.splitlines())
    next(lines, None)
    edges = []
    for cells in lines:
        if len(cells) != 2 and cells:
            raise typer.BadParameter(
                f"line {lines.line_num} of {path} must hold two names, got {len(cells)} cells"
            )
        if cells:
            edges.append((cells[0].strip(), cells[1].strip()))
    return edges
