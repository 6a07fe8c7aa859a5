from collections.abc import Callable
from functools import partial
from io import BytesIO
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest
from matplotlib import style
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from service.results.edges import Edge
from service.results.vocabulary import Verdict
from vnce_engine.inference.metrics import edge_roc
from worker.artefacts.exports.roc import adjacency
from worker.artefacts.figures.circle import Circle
from worker.artefacts.figures.drawing import (
    FONT_POINTS,
    NEGATIVE,
    PALE,
    POSITIVE,
    figure_artefacts,
    label,
    render,
)
from worker.artefacts.figures.heatmap import draw_heatmap
from worker.artefacts.figures.intervals import draw_intervals
from worker.artefacts.figures.network import draw_network
from worker.artefacts.figures.objective import draw_objective
from worker.artefacts.figures.roc import draw_roc
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


@pytest.mark.parametrize("lay_out", LAYOUTS)
@pytest.mark.parametrize("d", [2, 11, 60])
def test_network_writes_every_name(d: int, lay_out: Any) -> None:
    names = [f"protein {i}" for i in range(d)]
    assert set(names) <= set(texts(network(names, edges_among(names), lay_out=lay_out)))


def test_network_without_selected_pairs_still_shows_every_variable() -> None:
    names = ["a", "b", "c"]
    written = texts(network(names, edges_among(names, 0.01)))
    assert set(names) <= set(written)
    assert "0 of 3 pairs have q ≤ 0.1" in written
    assert "in no selected pair (3 variables)" in written
    assert "positive partial correlation" not in written


@pytest.mark.parametrize("lay_out", LAYOUTS)
def test_filled_and_hollow_nodes_are_explained(lay_out: Any) -> None:
    edges = [Edge("a", "b", -0.5, 0.5, 0.5, True, 9)]
    written = texts(network(["a", "b", "c"], edges, lay_out=lay_out))
    assert {"in a selected pair (2 variables)", "in no selected pair (1 variable)"} <= set(written)


def test_network_without_partial_correlations_says_why_no_pair_is_drawn() -> None:
    edges = [Edge("a", "b", -4.08, 4.08, None, False, 10)]
    picture = network(["a", "b"], edges, reason="K is not positive definite")
    assert "no pair is selected: K is not positive definite" in texts(picture)
    assert "4.08" not in picture


def test_names_of_any_script_are_drawn_as_text_and_not_as_formulas() -> None:
    written = texts(network(UNICODE_NAMES, edges_among(UNICODE_NAMES)))
    assert {label(name) for name in UNICODE_NAMES} <= set(written)
    assert "$\\alpha$" in written


def test_sign_decides_the_colour() -> None:
    pictures = [
        network(["a", "b"], [Edge("a", "b", -rho, rho, rho, True, 9)]).lower()
        for rho in (0.5, -0.5)
    ]
    for picture, colour, other in zip(
        pictures, (POSITIVE, NEGATIVE), (NEGATIVE, POSITIVE), strict=True
    ):
        assert picture.count(colour.lower()) == picture.count(other.lower()) + 1


def test_network_counts_found_false_and_missed_edges() -> None:
    edges = [Edge("a", "b", -0.5, 0.5, 0.5, True, 9), Edge("a", "c", -0.3, 0.3, 0.3, True, 9)]
    written = texts(network(["a", "b", "c"], edges, frozenset({("a", "b"), ("b", "c")})))
    assert {"in the true graph (1)", "not in it (1)", "true, not selected (1)"} <= set(written)


def test_the_same_drawing_gives_the_same_bytes_in_every_format() -> None:
    draw = heatmap_of(UNICODE_NAMES, np.full((6, 6), 0.3))
    made = {file.name: file for file in figure_artefacts("heatmap", draw)}
    assert made == {file.name: file for file in figure_artefacts("heatmap", draw)}
    assert {name: file.media_type for name, file in made.items()} == {
        "figures/heatmap.svg": "image/svg+xml",
        "figures/heatmap.pdf": "application/pdf",
        "figures/heatmap.png": "image/png",
    }
    assert made["figures/heatmap.pdf"].content.startswith(b"%PDF-")
    width, height, _ = mpl.image.imread(BytesIO(made["figures/heatmap.png"].content)).shape
    assert min(width, height) > 500


def test_a_users_own_matplotlib_settings_take_no_part() -> None:
    names = ["a", "b"]
    plain = network(names, edges_among(names))
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "lines.linestyle": "--"}):
        assert network(names, edges_among(names)) == plain
        assert mpl.rcParams["font.size"] == 30


def test_network_of_very_many_pairs_draws_the_strongest_and_counts_the_others() -> None:
    names = [f"x{i}" for i in range(30)]
    picture = network(names, edges_among(names))
    assert {"435 of 435 pairs have q ≤ 0.1"} <= set(texts(picture))
    assert "the strongest 200 are drawn, 235 are not" in texts(picture)
    in_legend = 1
    assert picture.lower().count(f"stroke: {POSITIVE.lower()}") == 200 + in_legend


def test_network_of_very_many_variables_names_the_most_strongly_joined() -> None:
    names = [f"x{i}" for i in range(500)]
    edges = [Edge("x77", "x401", -0.5, 0.5, 0.5, True, 9)]
    written = texts(network(names, edges, lay_out=Circle.of))
    assert {"x77", "x401"} <= set(written)
    num_named = len(set(written) & set(names))
    assert f"{num_named} of 500 variables are named" in written


def test_of_very_many_variables_without_a_line_the_picture_by_structure_says_how_many() -> None:
    names = [f"x{i}" for i in range(500)]
    written = texts(network(names, [Edge("x77", "x401", -0.5, 0.5, 0.5, True, 9)]))
    assert set(written) & set(names) == {"x77", "x401"}
    assert "498 variables without a line are left out" in written


def test_of_very_many_variables_without_any_line_there_is_a_picture_that_says_so() -> None:
    names = [f"x{i}" for i in range(300)]
    written = texts(network(names, edges_among(names, 0.01)))
    assert not set(written) & set(names)
    assert "300 variables without a line are left out" in written
    assert "in no selected pair (300 variables)" in written


def random_lines(names: list[str], num_lines: int) -> list[Pair]:
    places = np.random.default_rng(0).integers(len(names), size=(num_lines, 2))
    return [(names[one], names[other]) for one, other in places.tolist() if one != other]


@pytest.mark.parametrize(
    ("d", "num_lines", "name"),
    [(2, 1, "x{}"), (11, 20, "x{}"), (40, 180, "concentration {} in the soil"), (150, 200, "[{}]")],
)
def test_names_and_nodes_by_structure_do_not_overlap(d: int, num_lines: int, name: str) -> None:
    names = [name.format(i) for i in range(d)]
    layout = Structure.of(names, random_lines(names, num_lines))
    assert len(layout.shown) == d
    with style.context({"font.family": "DejaVu Sans"}):
        figure = Figure()
        low, high = layout.limits()
        figure.set_size_inches(*(high - low))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        layout.write_names(axes, names, ())
        boxes = [text.get_window_extent() for text in axes.texts]
        nodes = axes.transData.transform(layout.positions)
    radius = np.sqrt(layout.node_area) / 2 / 72 * figure.dpi
    for place, box in enumerate(boxes):
        others = boxes[:place] + boxes[place + 1 :]
        # A point's worth of kerning is no overlap.
        assert box.padded(-1).count_overlaps(others) == 0, names[place]
        x, y = np.clip(nodes, box.min, box.max).T
        near = np.hypot(nodes[:, 0] - x, nodes[:, 1] - y) < radius
        assert set(np.flatnonzero(near)) <= {place}


def test_joined_variables_are_nearer_by_structure_and_others_stand_below() -> None:
    names = [f"x{i}" for i in range(24)]
    groups = [names[:10], names[10:20]]
    lines = [pair for group in groups for pair in combinations(group, 2)] + [("x0", "x10")]
    places = Structure.of(names, lines).positions
    distances = np.hypot(*(places[:, None] - places).T)
    assert distances[:10, :10].mean() < 0.5 * distances[:10, 10:20].mean()
    assert places[20:, 1].max() < places[:20, 1].min()


@pytest.mark.parametrize("num_nodes", [2, 11, 100, 244, 500, 3000])
def test_names_on_a_circle_have_room_for_a_line_of_text_each(num_nodes: int) -> None:
    circle = Circle(num_nodes)
    named = sorted(circle.named(range(num_nodes)))
    gaps = np.diff([*named, named[0] + num_nodes]) * 2 * np.pi * circle.radius / num_nodes
    text_inches = 1.2 * FONT_POINTS / 72
    assert gaps.min() >= text_inches
    # No gap is left that would have held another name.
    assert len(named) == num_nodes or gaps.max() < 4 * text_inches


@pytest.mark.parametrize("num_nodes", [2, 100, 500, 3000])
def test_nodes_on_a_circle_do_not_touch(num_nodes: int) -> None:
    circle = Circle(num_nodes)
    between = 2 * circle.radius * np.sin(np.pi / num_nodes) * 72
    assert np.sqrt(circle.node_area) < between


def test_lines_between_neighbours_on_a_crowded_circle_leave_the_rim() -> None:
    circle = Circle(500)
    line = circle.line(10, 11)
    assert line[0] == pytest.approx(circle.positions[10])
    assert line[-1] == pytest.approx(circle.positions[11])
    depth = circle.radius - np.hypot(*line.T).min()
    assert depth * 72 > 3 * np.sqrt(circle.node_area)
    assert np.hypot(*circle.line(0, 250).T).min() < 1.0


@pytest.mark.parametrize(("d", "step"), [(100, 1), (500, 5)])
def test_heatmap_of_very_many_variables_names_one_in_a_few_and_says_so(d: int, step: int) -> None:
    names = [f"x{i}" for i in range(d)]
    written = texts(heatmap(names, np.eye(d)))
    assert len(set(names) & set(written)) == len(names[::step])
    assert (f"one variable in {step} is named, from the first of {d}" in written) == (step > 1)
    assert 14 * 72 / len(names[::step]) > FONT_POINTS


@pytest.mark.parametrize("names", [["a", "b"], UNICODE_NAMES, [f"x{i}" for i in range(60)]])
def test_heatmap_names_both_sides(names: list[str]) -> None:
    written = texts(heatmap(names, np.eye(len(names))))
    assert MEASURE in written
    for name in names:
        assert written.count(label(name)) == 2


def blocks(d: int, size: float) -> np.ndarray:
    """Return interactions of `size` among the even and among the odd variables."""
    return np.where(np.subtract.outer(np.arange(d), np.arange(d)) % 2 == 0, size, 0.0)


@pytest.mark.parametrize(("size", "limit"), [(0.013, 0.02), (0.3, 0.3), (0.41, 0.5), (0.0, 0.1)])
@pytest.mark.parametrize("d", [6, 154])
def test_the_colours_of_a_heatmap_end_where_the_data_do(d: int, size: float, limit: float) -> None:
    figure = Figure()
    names = [f"x{i}" for i in range(d)]
    heatmap_of(names, blocks(d, size))(figure)
    [image] = figure.axes[0].images
    assert image.get_clim() == (-limit, limit)


def test_one_strong_pair_does_not_pale_a_large_heatmap() -> None:
    matrix = blocks(40, 0.02)
    matrix[3, 4] = matrix[4, 3] = -0.9
    figure = Figure()
    names = [f"x{i}" for i in range(40)]
    heatmap_of(names, matrix)(figure)
    assert figure.axes[0].images[0].get_clim() == (-0.02, 0.02)
    assert "sizes from 0.02 to 0.9 have one colour" in texts(heatmap(names, matrix))


def test_a_large_heatmap_is_ordered_by_what_goes_together_and_says_so() -> None:
    names = [f"x{i}" for i in range(40)]
    picture = heatmap(names, blocks(40, 0.2))
    written = [text for text in texts(picture) if text in names]
    parities = [int(name[1:]) % 2 for name in written[:40]]
    assert sum(one != other for one, other in pairwise(parities)) == 1
    assert any("hierarchical clustering" in text for text in texts(picture))
    small = [text for text in texts(heatmap(names[:11], blocks(11, 0.2))) if text in names]
    assert small == names[:11] * 2


def test_heatmap_and_network_have_the_same_colours_for_the_same_signs() -> None:
    figure = Figure()
    matrix = np.array([[1, 0.5, -0.5], [0.5, 1, 0], [-0.5, 0, 1]])
    heatmap_of(["a", "b", "c"], matrix)(figure)
    [image] = figure.axes[0].images
    assert to_hex(image.to_rgba(0.5)) == POSITIVE.lower()
    assert to_hex(image.to_rgba(-0.5)) == NEGATIVE.lower()
    assert to_hex(image.to_rgba(0.0)) == "#ffffff"


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


def test_undecided_pairs_are_dashed_and_pale_and_absent_ones_not_drawn() -> None:
    names = ["a", "b", "c", "d"]
    edges = [
        *judged(["a", "b"], Verdict.PRESENT, 0.5),
        *judged(["a", "c"], Verdict.UNDECIDED, 0.3),
        *judged(["a", "d"], Verdict.ABSENT, 0.01),
    ]
    figure = Figure()
    draw_network(
        figure, names, edges, Structure.of, rule="q ≤ 0.1", truth=None, title="", reason=None
    )
    present, undecided = sorted(figure.axes[0].lines, key=lambda line: line.get_alpha() or 1.0)[
        ::-1
    ]
    assert (present.is_dashed(), present.get_alpha()) == (False, None)
    assert undecided.is_dashed()
    assert undecided.get_alpha() < 0.5
    assert "undecided (1 pair)" in texts(network(names, edges))
    assert "in no selected pair (2 variables)" in texts(network(names, edges))


def test_of_many_undecided_pairs_as_many_are_drawn_as_there_are_variables() -> None:
    names = [f"x{i}" for i in range(12)]
    edges = [
        edge
        for first in range(4)
        for edge in judged(names[first:], Verdict.UNDECIDED, *[0.3] * (11 - first))
    ]
    assert f"undecided (the strongest 12 of {len(edges)} pairs)" in texts(network(names, edges))


@pytest.mark.parametrize("d", [6, 20])
def test_selected_pairs_are_marked_in_a_heatmap(d: int) -> None:
    names = [f"x{i}" for i in range(d)]
    selected = np.zeros((d, d), dtype=bool)
    selected[0, 2] = selected[2, 0] = True
    figure = Figure()
    heatmap_of(names, blocks(d, 0.2), selected)(figure)
    [*dots] = figure.axes[0].collections
    bold = [text for text in figure.axes[0].texts if text.get_weight() == "bold"]
    assert sum(len(dot.get_offsets()) for dot in dots) + len(bold) == 2
    unmarked = " ".join(texts(heatmap(names, blocks(d, 0.2))))
    assert "selected" in " ".join(texts(heatmap(names, blocks(d, 0.2), selected)))
    assert "selected" not in unmarked


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


def test_roc_states_every_area_and_what_it_was_counted_over() -> None:
    truth = adjacency(["a", "b", "c"], {("a", "b")})
    scores = np.array([[0, 3, 2], [3, 0, 1], [2, 1, 0]])
    curves = {"VNCE": edge_roc(scores, truth), "NCE": edge_roc(-scores, truth)}
    written = texts(drawn(draw_roc, curves=curves, title="Edge recovery"))
    assert {"VNCE: AUC 1.000", "NCE: AUC 0.000", "1 true edges among 3 pairs"} <= set(written)


def test_roc_of_a_graph_without_edges_says_why_there_is_no_curve() -> None:
    curve = edge_roc(np.zeros((3, 3)), np.zeros((3, 3), dtype=bool))
    assert "nothing to tell apart" in " ".join(
        texts(drawn(draw_roc, curves={"|K|": curve}, title="Edge recovery"))
    )


def test_objective_of_a_single_iteration_is_drawn() -> None:
    assert "converged" in texts(
        drawn(draw_objective, objective=[-1.25], title="Objective", subtitle="converged")
    )


def test_the_line_of_an_objective_is_broken_where_noise_is_new_and_its_axis_named() -> None:
    figure = Figure()
    path = [-3.0, -2.5, -4.0, -3.9, -3.8]
    draw_objective(figure, path, "Objective", "converged", "squared gradient", [2, 4])
    [axes] = figure.axes
    assert axes.get_ylabel() == "squared gradient"
    lines = [line.get_xydata().tolist() for line in axes.get_lines()]
    assert lines == [[[1, -3.0], [2, -2.5]], [[3, -4.0], [4, -3.9]], [[5, -3.8]]]


def test_a_long_name_is_cut_to_a_bounded_width() -> None:
    assert label("体" * 30) == "体" * 11 + "…"
    assert label("a" * 30) == "a" * 23 + "…"
    assert label("a" * 24) == "a" * 24
