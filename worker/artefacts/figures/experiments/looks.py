"""Looks of lines that experiments share, told apart without colour too."""

from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from vnce_engine.experiments.experiment import Scalar
from worker.artefacts.figures.drawing import INK, SERIES

# The rest of Okabe and Ito's colours that can be read on white.
_COLOURS = (*SERIES, "#E69F00", "#56B4E9", INK)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_STYLES = ("-", (0, (5, 1.5)), (0, (2, 1.2)))
_NUM_LOOKS = 21

# Keyword arguments of matplotlib's `plot`; neighbours differ in colour and marker.
LINE_LOOKS: tuple[dict[str, Any], ...] = tuple(
    {"color": colour, "marker": marker, "linestyle": style, "markersize": 4, "linewidth": 1.4}
    for colour, marker, style in islice(
        zip(cycle(_COLOURS), cycle(_MARKERS), cycle(_STYLES), strict=False), _NUM_LOOKS
    )
)


def numbers(lines: Sequence[Mapping[str, Scalar]], key: str) -> list[float]:
    """Return the numbers under `key`; a line without one there is left out."""
    values = [line.get(key) for line in lines]
    return [float(value) for value in values if isinstance(value, int | float)]
