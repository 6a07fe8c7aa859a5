"""Figures of a network as tests draw them, and the texts in them."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure

from service.results.edges import Edge
from service.results.vocabulary import Verdict
from worker.artefacts.figures.circle import Circle
from worker.artefacts.figures.drawing import render
from worker.artefacts.figures.heatmap import draw_heatmap
from worker.artefacts.figures.network import draw_network
from worker.artefacts.figures.structure import Structure
from worker.artefacts.ground_truth import Pair

MEASURE = "partial correlation"
LAYOUTS = [Structure.of, Circle.of]
UNICODE_NAMES = ["体重（キログラム）", "🐧 penguin", "$\\alpha$", "x<y&z", "\x07bell", "العربية"]


def edges_among(names: list[str], partial_correlation: float = 0.5) -> list[Edge]:
    selected = abs(partial_correlation) >= 0.1
    return [
        Edge(
            one, other, -partial_correlation, partial_correlation, partial_correlation, selected, 10
        )
        for one, other in combinations(names, 2)
    ]


def drawn(draw: Callable[..., None], **arguments: Any) -> bytes:
    return render(partial(draw, **arguments), ["svg"])["svg"]


def network(
    names: list[str],
    edges: list[Edge],
    truth: frozenset[Pair] | None = None,
    reason: str | None = None,
    lay_out: Any = Structure.of,
) -> str:
    return drawn(
        draw_network,
        names=names,
        edges=edges,
        lay_out=lay_out,
        rule="q ≤ 0.1",
        truth=truth,
        title="Network",
        reason=reason,
    ).decode()


def heatmap_of(
    names: list[str], matrix: np.ndarray, selected: np.ndarray | None = None
) -> Callable[[Figure], None]:
    return partial(
        draw_heatmap,
        names=names,
        interaction=matrix,
        selected=np.zeros(matrix.shape, dtype=bool) if selected is None else selected,
        title="Matrix",
        measure=MEASURE,
    )


def heatmap(names: list[str], matrix: np.ndarray, selected: np.ndarray | None = None) -> bytes:
    return drawn(heatmap_of(names, matrix, selected))


def texts(svg: str | bytes) -> list[str]:
    tags = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(tag.itertext()) for tag in tags]


def judged(
    names: list[str], verdict: Verdict, *sizes: float, debiased: float | None = 0.2
) -> list[Edge]:
    """Return pairs of the first variable with the others, of these sizes."""
    return [
        Edge(
            names[0],
            other,
            -size,
            size,
            size,
            verdict is Verdict.PRESENT,
            90,
            debiased=debiased,
            lower=-0.1,
            upper=0.5,
            verdict=verdict,
        )
        for other, size in zip(names[1:], sizes, strict=True)
    ]
