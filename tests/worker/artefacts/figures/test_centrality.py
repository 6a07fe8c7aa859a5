"""Places of variables in a network."""

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from service.results.schemas import IntervalRead, VariableRead
from tests.worker.artefacts.figures.pictures import drawn, texts
from worker.artefacts.figures.centrality import draw_centrality
from worker.artefacts.figures.drawing import INK, NEGATIVE, POSITIVE

WHITE = "#FFFFFF"


def interval(value: float | None) -> IntervalRead | None:
    if value is None:
        return None
    return IntervalRead(value=value, lower=value - 0.1, upper=value + 0.1)


def variable(
    name: str,
    strength: float | None,
    influence: float | None = 0.3,
    share: float | None = 0.2,
    degree: int | None = 1,
) -> VariableRead:
    return VariableRead(
        name=name,
        n_observed=90,
        degree=degree,
        strength=interval(strength),
        expected_influence=interval(influence),
        predictability=interval(share),
    )


def names_of(variables: list[VariableRead], written: list[str]) -> list[str]:
    return [text for text in written if text in {one.name for one in variables}]


def test_the_strongest_variables_are_drawn_and_the_others_counted() -> None:
    variables = [variable(f"x{i}", i / 100) for i in range(49)] + [variable("unknown", None)]
    written = texts(drawn(draw_centrality, variables=variables, title="Centrality"))
    assert names_of(variables, written) == [f"x{i}" for i in range(48, 8, -1)]
    which = "estimates with 95 % intervals; the 40 of 50 variables of the largest strength"
    assert which in written


def test_without_standard_errors_variables_are_ordered_by_their_predictability() -> None:
    variables = [variable(name, None, None, share) for name, share in (("a", 0.1), ("b", 0.4))]
    written = texts(drawn(draw_centrality, variables=variables, title="Centrality"))
    assert names_of(variables, written) == ["b", "a"]
    assert "predictability (R²)" in written
    assert "strength" not in written


def test_a_sign_has_its_colour_and_a_variable_in_no_pair_is_hollow() -> None:
    figure = Figure()
    variables = [variable("a", 0.5, -0.5), variable("b", 0.0, 0.2, degree=0)]
    draw_centrality(figure, variables, "Centrality")
    looks = [axes.collections[-1] for axes in figure.axes]
    edges = [[to_hex(colour).upper() for colour in one.get_edgecolor()] for one in looks]
    faces = [[to_hex(colour).upper() for colour in one.get_facecolor()] for one in looks]
    assert edges == [[INK, INK], [NEGATIVE, POSITIVE], [INK, INK]]
    assert faces == [[INK, WHITE], [NEGATIVE, WHITE], [INK, WHITE]]
