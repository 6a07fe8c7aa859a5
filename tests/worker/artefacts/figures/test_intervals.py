"""Intervals of edges."""

from matplotlib.figure import Figure

from service.results.vocabulary import Verdict
from tests.worker.artefacts.figures.pictures import drawn, judged, texts
from worker.artefacts.figures.drawing import (
    NEGATIVE,
    PALE,
    POSITIVE,
)
from worker.artefacts.figures.intervals import draw_intervals


def test_intervals_are_drawn_of_the_largest_estimates_and_verdicts_counted() -> None:
    names = [f"x{i}" for i in range(50)]
    edges = [
        *judged(["a", "b"], Verdict.PRESENT, 0.1, debiased=-0.9),
        *judged(names, Verdict.UNDECIDED, *[0.1] * 49),
        *judged(["c", "d"], Verdict.ABSENT, 0.01, debiased=0.0),
        *judged(["e", "f"], Verdict.UNDECIDED, 0.7, debiased=None),
    ]
    written = texts(drawn(draw_intervals, edges=edges, edge_threshold=0.1, title="Intervals"))
    pairs = [text for text in written if " – " in text]
    assert len(pairs) == 40
    assert pairs[0] == "a – b"
    assert "52 pairs: 1 present, 1 absent, 50 undecided; the 40 largest are drawn" in written
    assert "e – f" not in written


def test_an_interval_has_the_colour_of_its_verdict_and_sign() -> None:
    edges = [
        *judged(["a", "b"], Verdict.PRESENT, 0.1, debiased=-0.9),
        *judged(["a", "c"], Verdict.UNDECIDED, 0.1),
        *judged(["a", "d"], Verdict.ABSENT, 0.01, debiased=0.01),
    ]
    figure = Figure()
    draw_intervals(figure, edges, 0.1, title="Intervals")
    markers = [line for line in figure.axes[0].lines if line.get_marker() in ("o", "s")]
    faces = [(line.get_color(), line.get_markerfacecolor()) for line in markers]
    assert faces == [(NEGATIVE, NEGATIVE), (POSITIVE, "white"), (PALE, PALE)]
