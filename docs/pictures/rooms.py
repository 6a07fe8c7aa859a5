"""Draws `rooms.svg`: the rooms of the three packages, and what imports what.

    python docs/pictures/rooms.py

A room is a folder, or a file beside them. Each stands above all that it imports; lines are its
imports, without those that follow from others. `tests/architecture` holds the picture to the code.
"""

from collections.abc import Iterator
from pathlib import Path

import grimp
import networkx as nx

PICTURE = Path(__file__).with_name("rooms.svg")
# In the order of their columns: the worker, between the two, imports both.
PACKAGES = ("service", "worker", "vnce_engine")
_BOX_WIDTH, _BOX_HEIGHT, _GAP = 118, 28, 14
_FLOOR_HEIGHT, _COLUMN_GAP, _MARGIN, _TITLE_HEIGHT = 62, 48, 20, 54
_STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#1f2933}"
    ".title{font-weight:bold;font-size:15px}.note{font-size:12px;fill:#52606d}"
    "rect{fill:#eef4fb;stroke:#3b6ea5;rx:4px}.file{fill:#ffffff;stroke-dasharray:3 2}"
    "line{stroke:#9aa5b1;stroke-width:1.2}"
)


def imports(package: str) -> nx.DiGraph:
    """Return the rooms of a package, each with edges to those that it imports."""
    modules = grimp.build_graph(package)
    if f"{package}.__main__" in modules.modules:  # starts what the others are
        modules.remove_module(f"{package}.__main__")
    rooms = nx.DiGraph()
    rooms.add_nodes_from(_room(module) for module in modules.find_children(package))
    for importer in modules.modules - {package}:
        for imported in modules.find_modules_directly_imported_by(importer) - {package}:
            if _room(importer) != _room(imported):
                rooms.add_edge(_room(importer), _room(imported))
    return rooms


def picture() -> str:
    """Return the picture as SVG."""
    columns = [imports(package) for package in PACKAGES]
    floors = [_floors(rooms) for rooms in columns]
    widths = [max(len(rooms) for rooms in column) * (_BOX_WIDTH + _GAP) - _GAP for column in floors]
    most_floors = max(len(column) for column in floors)
    height = _TITLE_HEIGHT + most_floors * _FLOOR_HEIGHT + _MARGIN
    width = 2 * _MARGIN + sum(widths) + _COLUMN_GAP * (len(columns) - 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" style="fill:#ffffff;stroke:none"/>',
    ]
    left = _MARGIN
    for package, rooms, column, column_width in zip(PACKAGES, columns, floors, widths, strict=True):
        parts += _drawn(package, rooms, column, left, column_width, height)
        left += column_width + _COLUMN_GAP
    return "\n".join([*parts, "</svg>", ""])


def _room(module: str) -> str:
    return module.split(".")[1]


def _floors(rooms: nx.DiGraph) -> list[list[str]]:
    """Return the rooms floor by floor from the ground; each stands above all that it imports."""
    return [sorted(floor) for floor in nx.topological_generations(rooms.reverse())]


def _drawn(
    package: str, rooms: nx.DiGraph, floors: list[list[str]], left: float, width: float, height: int
) -> Iterator[str]:
    """Yield the elements of one package's column."""
    centre = left + width / 2
    note = "imports service and vnce_engine" if package == "worker" else "imports neither other"
    yield f'<text class="title" x="{centre:g}" y="24">{package}</text>'
    yield f'<text class="note" x="{centre:g}" y="42">{note}</text>'
    places = {}
    for level, names in enumerate(floors):
        start = centre - (len(names) * (_BOX_WIDTH + _GAP) - _GAP) / 2
        for position, name in enumerate(names):
            top = height - _MARGIN - _BOX_HEIGHT - level * _FLOOR_HEIGHT
            places[name] = (start + position * (_BOX_WIDTH + _GAP), top)
    for importer, imported in sorted(nx.transitive_reduction(rooms).edges):
        (x1, y1), (x2, y2) = places[importer], places[imported]
        yield (
            f'<line x1="{x1 + _BOX_WIDTH / 2:g}" y1="{y1 + _BOX_HEIGHT}" '
            f'x2="{x2 + _BOX_WIDTH / 2:g}" y2="{y2}"/>'
        )
    for name, (x, y) in sorted(places.items()):
        is_file = not (Path(package) / name).is_dir()
        look = ' class="file"' if is_file else ""
        yield f'<rect{look} x="{x:g}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"/>'
        label = f"{name}.py" if is_file else f"{name}/"
        yield f'<text x="{x + _BOX_WIDTH / 2:g}" y="{y + 19}">{label}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
