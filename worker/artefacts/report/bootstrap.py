"""What a report says of a network over resamples of its rows."""

from collections.abc import Iterator, Sequence

from service.http.words import counted
from service.results.bootstrap_result import BootstrapEdgeRead, BootstrapResult
from service.results.outcome import Artefact
from worker.artefacts.figures.stability import STATISTICS
from worker.artefacts.report.section import (
    MOST_ROWS,
    Row,
    Section,
    Table,
    extent,
    failures,
    interval,
    number,
    pictures,
)

_FIGURES = {
    "bootstrap": "The strongest pairs: means and 95 % percentile intervals over resamples, and the "
    "share of resamples that have them selected.",
    "stability": "Correlations of subsets of the rows with all rows.",
}


def bootstrap_section(result: BootstrapResult, artefacts: Sequence[Artefact]) -> Section:
    """Return what to say of it, with the figures among its `artefacts`."""
    shown = result.edges[:MOST_ROWS]
    is_debiased = any(edge.debiased.n for edge in result.edges)
    spread = "without the penalty's bias" if is_debiased else "as estimated"
    return Section(
        heading="Bootstrap: the network over resamples of the rows",
        verdict=" ".join(_verdict(result)),
        facts=[*_stability(result), *_spare(result), *_failures(result)],
        pictures=pictures(artefacts, _FIGURES),
        tables=[
            Table(
                extent(len(shown), len(result.edges), "pairs, the strongest", "bootstrap.csv")
                + f" Means and percentile intervals are of the partial correlation {spread}.",
                ("pair", "selected", "share of resamples that select it", "mean", "95 % interval"),
                [_row(edge, is_debiased=is_debiased) for edge in shown],
            )
        ],
        methods=_methods(result),
    )


def _verdict(result: BootstrapResult) -> Iterator[str]:
    if result.reason is not None:
        yield f"{result.reason}."
        return
    yield f"{result.n_ok} of {counted(result.n_requested, 'resample')} of the rows have a network."
    found = []
    if shares := _shares(result, selected=True):
        extremes = dict.fromkeys(f"{end:.0%}" for end in (min(shares), max(shares)))
        found.append(
            f"{_num_usual(shares)} of {counted(len(shares), 'pair')} selected in the network "
            f"(by {' to '.join(extremes)} of them)"
        )
    if shares := _shares(result, selected=False):
        found.append(f"{_num_usual(shares)} of {len(shares)} others")
    if found:
        yield f"Selected by more than half of them: {', and '.join(found)}."


def _shares(result: BootstrapResult, *, selected: bool) -> list[float]:
    return [
        edge.inclusion
        for edge in result.edges
        if edge.selected is selected and edge.inclusion is not None
    ]


def _num_usual(shares: Sequence[float]) -> int:
    return sum(share > 0.5 for share in shares)


def _stability(result: BootstrapResult) -> Iterator[str]:
    if result.rank_correlation is not None:
        yield (
            "Pairs by size: rank correlation with the network's "
            f"{result.rank_correlation:.2f}, mean over resamples."
        )
    if result.top_kept is not None:
        yield (
            f"Strongest pairs, as many as are selected ({result.n_selected}): "
            f"{result.top_kept:.0%} of them are among as many strongest of a resample, mean over "
            "resamples."
        )
    if result.strength_rank_correlation is not None:
        yield f"Variables by strength: rank correlation {result.strength_rank_correlation:.2f}."


def _spare(result: BootstrapResult) -> Iterator[str]:
    if (found := result.stability) is None:
        return
    shares = [
        f"{words} {number(getattr(found, name).coefficient, '.0%') or 'unknown'}"
        for name, words in STATISTICS.items()
    ]
    yield f"Correlation stability, rows that can be left out: {', '.join(shares)}."
    yield from failures(found.failures, sum(found.n_requested), "subset")


def _failures(result: BootstrapResult) -> list[str]:
    return failures(result.resample_failures, result.n_requested, "resample")


def _row(edge: BootstrapEdgeRead, *, is_debiased: bool) -> Row:
    spread = edge.debiased if is_debiased else edge.partial_correlation
    cells = [
        "yes" if edge.selected else "no",
        number(edge.inclusion, ".0%"),
        number(spread.mean),
        interval(spread.lower, spread.upper),
    ]
    return Row(f"{edge.source} – {edge.target}", cells, is_bold=edge.selected)


def _methods(result: BootstrapResult) -> str:
    drawn = "the rows" if result.n_clusters is None else f"{result.n_clusters} clusters of rows"
    said = (
        f"The network was fitted again to {result.n_requested} resamples of {drawn}, drawn with "
        "replacement, by the transforms, the linear term and the penalty that the fit to all rows "
        "chose; intervals over resamples are of 95 %, by percentiles (Efron and Tibshirani, 1993)."
    )
    if result.stability is None:
        return said
    return (
        f"{said} So it was to {sum(result.stability.n_requested)} subsets that lack 5 to 75 % of "
        "the rows: the correlation stability coefficient (Epskamp, Borsboom and Fried, 2018) is "
        "the largest share left out at which 95 % of the subsets have a correlation with all rows "
        "of at least .7."
    )
