"""Variables on a circle, in their order: where they are, and which of them are named."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from worker.artefacts.figures.drawing import INK, POINTS_PER_INCH, label
from worker.artefacts.ground_truth import Pair

_LABEL_GAP_INCHES = 0.13
# Room for one line of text between neighbours on the circle.
_ARC_INCHES = 0.18
_MIN_RADIUS_INCHES = 1.9
# Beyond this, which 240 variables need, the picture no longer fits a screen.
_MAX_RADIUS_INCHES = 7.0
# Up to here labels stand upright without touching; beyond, each points away from the centre.
_MAX_UPRIGHT_LABELS = 24
_LARGEST_NODE_POINTS = 7.0
# How much of the arc between two neighbours a node covers at most.
_NODE_SHARE = 0.6
# How far lines on a crowded circle bend inwards, so that neighbours' lines leave the rim.
_BEND_INCHES = 0.3
_POINTS_PER_LINE = 16


@dataclass(frozen=True)
class Circle:
    """A circle of `num_nodes` places, the first at the top, clockwise."""

    num_nodes: int

    @classmethod
    def of(cls, names: Sequence[str], lines: Iterable[Pair]) -> Self:
        """Return the circle of these variables, whatever `lines` there are."""
        return cls(len(names))

    @property
    def shown(self) -> NDArray[np.intp]:
        """The variables that are drawn: all."""
        return np.arange(self.num_nodes)

    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower left and the upper right corner, each (2,)."""
        corner = np.full(2, self.radius)
        return -corner, corner

    @property
    def radius(self) -> float:
        """The radius in inches."""
        needed = self.num_nodes * _ARC_INCHES / (2 * np.pi)
        return float(np.clip(needed, _MIN_RADIUS_INCHES, _MAX_RADIUS_INCHES))

    @cached_property
    def angles(self) -> NDArray[np.float64]:
        """The places (num_nodes,) as angles in radians, counter-clockwise from the right."""
        return np.pi / 2 - 2 * np.pi * np.arange(self.num_nodes) / self.num_nodes

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """The places (num_nodes, 2) in inches from the centre."""
        return self.radius * np.column_stack([np.cos(self.angles), np.sin(self.angles)])

    @property
    def node_area(self) -> float:
        """The area in square points of a dot that does not touch its neighbours."""
        arc = 2 * np.pi * self.radius / self.num_nodes * POINTS_PER_INCH
        return float(min(_LARGEST_NODE_POINTS, _NODE_SHARE * arc) ** 2)

    def line(self, one: int, other: int) -> NDArray[np.float64]:
        """Return the points (p, 2) of the line between two places.

        It is straight unless the circle is as large as allowed: then its nodes lie so close that
        only a bent line between neighbours can be seen.
        """
        start, end = self.positions[one], self.positions[other]
        if self.radius < _MAX_RADIUS_INCHES:
            return np.stack([start, end])
        # A quadratic Bézier curve; lines through the centre stay straight.
        middle = (start + end) / 2
        distance = float(np.hypot(*middle))
        control = middle * (1 - 2 * _BEND_INCHES / max(distance, 2 * _BEND_INCHES))
        t = np.linspace(0, 1, _POINTS_PER_LINE)[:, None]
        curve: NDArray[np.float64] = (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end
        return curve

    def named(self, by_importance: Iterable[int]) -> list[int]:
        """Return the places whose names fit; where they do not all, the important ones first."""
        arc = 2 * np.pi * self.radius / self.num_nodes
        # Rounded, since a radius that makes exactly enough room must not fall short by an ulp.
        spacing = int(np.ceil(round(_ARC_INCHES / arc, 6)))
        is_free = np.ones(self.num_nodes, dtype=np.bool_)
        chosen = []
        for place in by_importance:
            if is_free[place]:
                chosen.append(place)
                is_free[np.arange(place - spacing + 1, place + spacing) % self.num_nodes] = False
        return chosen

    def write_names(self, axes: Axes, names: Sequence[str], by_importance: Iterable[int]) -> int:
        """Write the names that fit around the circle, and return how many they are."""
        places = self.named(by_importance)
        for place in places:
            self._write_name(axes, names[place], place)
        return len(places)

    def _write_name(self, axes: Axes, name: str, place: int) -> None:
        angle = self.angles[place]
        x, y = np.cos(angle), np.sin(angle)
        is_left = x < -1e-9
        if self.num_nodes <= _MAX_UPRIGHT_LABELS:
            is_pole = abs(x) < 0.1
            horizontal = "center" if is_pole else "right" if is_left else "left"
            vertical = "center" if abs(y) < 0.9 else "bottom" if y > 0 else "top"
            rotation = 0.0
        else:
            horizontal = "right" if is_left else "left"
            vertical = "center"
            rotation = float(np.degrees(angle)) - (180 if is_left else 0)
        axes.text(
            (self.radius + _LABEL_GAP_INCHES) * x,
            (self.radius + _LABEL_GAP_INCHES) * y,
            label(name),
            color=INK,
            horizontalalignment=horizontal,
            verticalalignment=vertical,
            rotation=rotation,
            rotation_mode="anchor",
        )
