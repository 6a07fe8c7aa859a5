"""Networks, ROC curves and objectives as figures."""

from io import BytesIO
from itertools import combinations
from typing import Any

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest
from matplotlib import style
from matplotlib.figure import Figure

from service.results.edges import Edge
from service.results.vocabulary import Verdict
from tests.worker.artefacts.figures.pictures import (
    LAYOUTS,
    UNICODE_NAMES,
    drawn,
    edges_among,
    heatmap_of,
    judged,
    network,
    texts,
)
from vnce_engine.inference.metrics import edge_roc
from worker.artefacts.exports.roc import adjacency
from worker.artefacts.figures.circle import Circle
from worker.artefacts.figures.drawing import (
    FONT_POINTS,
    NEGATIVE,
    POSITIVE,
    figure_artefacts,
    label,
)
from worker.artefacts.figures.network import draw_network
from worker.artefacts.figures.objective import draw_objective
from worker.artefacts.figures.roc import draw_roc
from worker.artefacts.figures.structure import Structure
from worker.artefacts.ground_truth import Pair


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert label("体" * 30) == "体" * 7 + "…" + "体" * 4
    assert label("a" * 30) == "a" * 14 + "…" + "a" * 9
    assert label("a" * 24) == "a" * 24


def test_long_names_that_begin_alike_are_cut_to_different_ones() -> None:
    assert label("haemoglobin A1c (mmol/mol)_8") == "haemoglobin A1…ol/mol)_8"
    assert label("e" * 30 + "e\N{COMBINING ACUTE ACCENT}" + "x" * 9).endswith("…" + "x" * 9)
