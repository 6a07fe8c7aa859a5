"""Each variable's place in the network: strength, expected influence and predictability."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from service.http.words import counted
from service.results.schemas import IntervalRead, VariableRead
from worker.artefacts.figures.drawing import (
    INK,
    NEGATIVE,
    POSITIVE,
    QUIET,
    add_title,
    label,
)

# More would be no easier to read than the table.
_MOST_VARIABLES = 40
_LINE_INCHES = 0.2
_PANEL_INCHES = 2.2
_NAME_COLUMNS = 40
_MARKER_AREA = 30

_Measure = Callable[[VariableRead], IntervalRead | None]
_SIGNED = "expected influence"
# The first that is known orders the variables.
_MEASURES: dict[str, _Measure] = {
    "strength": lambda variable: variable.strength,
    _SIGNED: lambda variable: variable.expected_influence,
    "predictability (R²)": lambda variable: variable.predictability,
}


def draw_centrality(figure: Figure, variables: Sequence[VariableRead], title: str) -> None:
    """Draw at most 40 variables, the strongest first, a line each and a panel a measure.

    Measures that are known of no variable are left out; of one at least something must be known.
    A hollow marker is of a variable in no pair found present.
    """
    known = {name: of for name, of in _MEASURES.items() if any(map(of, variables))}
    ordering = list(known.values())
    ranked = sorted(variables, key=lambda one: [_descending(of(one)) for of in ordering])
    shown = ranked[:_MOST_VARIABLES]
    figure.set_size_inches(_PANEL_INCHES * len(known), _LINE_INCHES * (len(shown) + 1))
    panels = figure.subplots(
        1, len(known), sharey=True, squeeze=False, gridspec_kw={"wspace": 0.12}
    )
    for axes, (name, of) in zip(panels[0], known.items(), strict=True):
        _draw_measure(axes, shown, of, _by_sign if name == _SIGNED else lambda value: INK)
        axes.set_xlabel(name)
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
        axes.xaxis.set_major_formatter("{x:g}")
    first = panels[0, 0]
    first.set_yticks(range(len(shown)), [label(variable.name, _NAME_COLUMNS) for variable in shown])
    first.set_ylim(len(shown) - 0.3, -0.7)
    add_title(figure, title, _subtitle(len(shown), variables, next(iter(known))))


def _descending(interval: IntervalRead | None) -> tuple[bool, float]:
    return (True, 0.0) if interval is None else (False, -interval.value)


def _draw_measure(
    axes: Axes,
    variables: Sequence[VariableRead],
    of: _Measure,
    colour_of: Callable[[float], str],
) -> None:
    axes.axvline(0, color=QUIET, linewidth=0.8)
    known = [
        (place, interval, variable.degree != 0)
        for place, variable in enumerate(variables)
        if (interval := of(variable)) is not None
    ]
    if not known:
        return
    places, intervals, is_filled = zip(*known, strict=True)
    colours = [colour_of(interval.value) for interval in intervals]
    ends = [interval.lower for interval in intervals], [interval.upper for interval in intervals]
    axes.hlines(places, *ends, colors=colours, linewidth=1.6)
    axes.scatter(
        [interval.value for interval in intervals],
        places,
        _MARKER_AREA,
        edgecolors=colours,
        facecolors=[c if fill else "white" for c, fill in zip(colours, is_filled, strict=True)],
        zorder=3,
    )


def _by_sign(value: float) -> str:
    return POSITIVE if value > 0 else NEGATIVE


def _subtitle(num_shown: int, variables: Sequence[VariableRead], ordered_by: str) -> str:
    which = (
        ""
        if num_shown == len(variables)
        else f"; the {num_shown} of {counted(len(variables), 'variable')} of the largest "
        f"{ordered_by}"
    )
    num_alone = sum(variable.degree == 0 for variable in variables)
    hollow = f"\nhollow: in no pair found present ({num_alone})" if num_alone else ""
    return f"estimates with 95 % intervals{which}{hollow}"
