"""Heat maps of a network."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.worker.artefacts.figures.pictures import (
    MEASURE,
    UNICODE_NAMES,
    heatmap,
    heatmap_of,
    texts,
)
from worker.artefacts.figures.drawing import (
    FONT_POINTS,
    NEGATIVE,
    POSITIVE,
    label,
)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "step"), [(100, 1), (500, 5)])
def test_heatmap_of_very_many_variables_names_one_in_a_few_and_says_so(d: int, step: int) -> None:
    names = [f"x{i}" for i in range(d)]
    written = texts(heatmap(names, np.eye(d)))
    assert len(set(names) & set(written)) == len(names[::step])
    assert (f"one variable in {step} is named, from the first of {d}" in written) == (step > 1)
    assert 14 * 72 / len(names[::step]) > FONT_POINTS


@pytest.mark.slow
@pytest.mark.parametrize("names", [["a", "b"], UNICODE_NAMES, [f"x{i}" for i in range(60)]])
def test_heatmap_names_both_sides(names: list[str]) -> None:
    written = texts(heatmap(names, np.eye(len(names))))
    assert MEASURE in written
    for name in names:
        assert written.count(label(name)) == 2


def blocks(d: int, size: float) -> np.ndarray:
    """Return interactions of `size` among the even and among the odd variables."""
    return np.where(np.subtract.outer(np.arange(d), np.arange(d)) % 2 == 0, size, 0.0)


@pytest.mark.slow
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


@pytest.mark.slow
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
