"""Variables placed by what they are joined to, by a force-directed layout; the others in rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from worker.artefacts.figures.drawing import INK, POINTS_PER_INCH, label, text_inches
from worker.artefacts.ground_truth import Pair

FloatArray = NDArray[np.float64]

_SEED = 0
_ITERATIONS = 300
_NODE_POINTS = 8.0
_LABEL_POINTS = 8.0
_LINE_INCHES = 1.35 * _LABEL_POINTS / POINTS_PER_INCH
_NODE_INCHES = _NODE_POINTS / POINTS_PER_INCH
# Between the boxes of two nodes, each with its name.
_GAP_INCHES = 0.08
# Area of the layout over that of all boxes, so that lines are seen between them.
_ROOM = 3.5
# That many edges a node need twice as much of it.
_EDGES_FOR_TWICE = 4
# The power of the distance from the middle at which nodes are drawn.
_FAR = 0.75
# Nearer to it than this, of coordinates from -1 to 1, no power is taken, which 0 does not have.
_RATHER_NEAR = 1e-6
_MIN_SIDE_INCHES = 3.6
_MAX_PASSES = 500
# Beyond as many unjoined variables their rows would be longer than the network.
_MAX_UNJOINED = 200
# Width of rows over their height, at least.
_ROW_ASPECT = 1.3


@dataclass(frozen=True)
class Structure:
    """Where each variable and its name are drawn, in inches; no two of them overlap."""

    # (d, 2), NaN for those that are left out.
    positions: FloatArray
    # Of each name: above its node (1), below (-1) or, in a row, to the right (0).
    sides: NDArray[np.int_]

    node_area = _NODE_POINTS**2

    @classmethod
    def of(cls, names: Sequence[str], lines: Iterable[Pair]) -> Self:
        """Return the layout of a network in which `lines` are drawn."""
        index = {name: place for place, name in enumerate(names)}
        graph = nx.Graph()
        graph.add_edges_from((index[one], index[other]) for one, other in lines)
        joined = sorted(graph)
        positions = np.full((len(names), 2), np.nan)
        sides = np.zeros(len(names), dtype=np.int_)
        if joined:
            positions[joined], sides[joined] = _layout(graph, [names[i] for i in joined])
        unjoined = np.flatnonzero(sides == 0).tolist()
        if len(unjoined) <= _MAX_UNJOINED:
            positions[unjoined] = _rows([names[i] for i in unjoined], positions[joined])
        return cls(positions, sides)

    @property
    def shown(self) -> NDArray[np.intp]:
        """The variables that are drawn."""
        return np.flatnonzero(~np.isnan(self.positions[:, 0]))

    def line(self, one: int, other: int) -> FloatArray:
        """Return the ends (2, 2) of the line between two variables."""
        return np.stack([self.positions[one], self.positions[other]])

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner, each (2,), of all nodes."""
        # Where nothing is drawn a place in the middle still makes a picture, for its title.
        places = self.positions[self.shown] if len(self.shown) else np.zeros((1, 2))
        margin = _NODE_INCHES
        return places.min(axis=0) - margin, places.max(axis=0) + margin

    def write_names(self, axes: Axes, names: Sequence[str], by_importance: Iterable[int]) -> int:
        """Write every drawn variable's name, and return how many they are."""
        for place in self.shown:
            x, y = self.positions[place]
            if (side := self.sides[place]) == 0:
                x, horizontal, vertical = x + _NODE_INCHES, "left", "center"
            else:
                y, horizontal = y + side * 0.7 * _NODE_INCHES, "center"
                vertical = "bottom" if side > 0 else "top"
            axes.text(
                x,
                y,
                label(names[place]),
                horizontalalignment=horizontal,
                verticalalignment=vertical,
                color=INK,
                fontsize=_LABEL_POINTS,
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.4},
            )
        return len(self.shown)


def _layout(graph: nx.Graph, names: Sequence[str]) -> tuple[FloatArray, NDArray[np.int_]]:
    """Return places (m, 2) of a graph's nodes, in their order, and the sides (m,) of names."""
    nodes = sorted(graph)
    found = nx.spring_layout(graph, seed=_SEED, iterations=_ITERATIONS, method="energy")
    # In polar coordinates: far nodes are drawn nearer, so that the middle has more room.
    z = np.array([complex(*found[node]) for node in nodes])
    z -= z.mean()
    z *= np.abs(z).clip(_RATHER_NEAR) ** (_FAR - 1)
    places = np.column_stack([z.real, z.imag])
    above = [sum(found[other][1] - found[node][1] for other in graph[node]) <= 0 for node in nodes]
    sides = np.where(above, 1, -1)
    widths = [max(_NODE_INCHES, text_inches(label(name), _LABEL_POINTS)) for name in names]
    height = _NODE_INCHES + _LINE_INCHES
    boxes = np.column_stack([widths, np.full(len(names), height)]) + _GAP_INCHES
    room = _ROOM * (1 + graph.number_of_edges() / len(nodes) / _EDGES_FOR_TWICE)
    side = max(_MIN_SIDE_INCHES, float(np.sqrt(room * boxes.prod(axis=1).sum())))
    places *= side / np.ptp(places, axis=0).max()
    # From the middle of a node to that of its box.
    to_middle = np.column_stack([np.zeros(len(nodes)), sides * _LINE_INCHES / 2])
    return _pushed_apart(places + to_middle, boxes) - to_middle, sides


def _pushed_apart(places: FloatArray, boxes: FloatArray) -> FloatArray:
    """Return places (m, 2) from which overlapping boxes (m, 2) have moved away from each other."""
    places = places.copy()
    needed = (boxes[:, None] + boxes) / 2  # (m, m, 2)
    for _ in range(_MAX_PASSES):
        apart = places[:, None] - places
        overlap = needed - np.abs(apart)
        is_over = (overlap > 1e-9).all(axis=2) & ~np.eye(len(places), dtype=np.bool_)
        if not is_over.any():
            break
        # Along the axis of the smaller overlap, each by half of it.
        axis = np.argmin(overlap, axis=2)[..., None]
        size = np.take_along_axis(overlap, axis, axis=2)[..., 0] / 2
        sign = np.where(np.take_along_axis(apart, axis, axis=2)[..., 0] < 0, -1.0, 1.0)
        push = np.where(is_over, size * sign, 0.0)
        for dimension in (0, 1):
            places[:, dimension] += 0.5 * np.where(axis[..., 0] == dimension, push, 0).sum(axis=1)
    return places


def _rows(names: Sequence[str], joined: FloatArray) -> FloatArray:
    """Return places (m, 2) in rows below those of the joined variables (j, 2)."""
    widths = [text_inches(label(name), _LABEL_POINTS) for name in names]
    cell = max(widths, default=0.0) + 3 * _NODE_INCHES
    height = 1.2 * _LINE_INCHES
    left, right = (joined[:, 0].min(), joined[:, 0].max()) if len(joined) else (0.0, 0.0)
    top = joined[:, 1].min() - 5 * _LINE_INCHES if len(joined) else 0.0
    width = max(right - left, _ROW_ASPECT * np.sqrt(len(names) * cell * height))
    row, column = np.divmod(np.arange(len(names)), max(1, int(width / cell)))
    return np.column_stack([left + column * cell, top - row * height])
