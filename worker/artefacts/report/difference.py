"""What a report says of the difference of two networks."""

from collections.abc import Iterator, Sequence

from service.http.words import counted, in_clusters
from service.results.difference_result import DifferenceEdgeRead, DifferenceResult
from service.results.outcome import Artefact
from worker.artefacts.figures.drawing import label
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
    "difference": "Pairs of the largest |z|: in both networks, and the first minus the second.",
}


def difference_section(result: DifferenceResult, artefacts: Sequence[Artefact]) -> Section:
    """Return what to say of it, with the figure among its `artefacts`."""
    first, second = result.first, result.second
    # Such as `sex = 0`, on one line.
    labels = [
        name.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
        for name in (label(first.label), label(second.label))
    ]
    shown = result.edges[:MOST_ROWS]
    return Section(
        heading=f"Difference: {first.label} minus {second.label}",
        verdict=" ".join(_verdict(result)),
        facts=list(_facts(result)),
        pictures=pictures(artefacts, _FIGURES),
        tables=[
            Table(
                extent(len(shown), len(result.edges), "pairs, the largest |z|", "difference.csv")
                + " Partial correlations are without the penalty's bias.",
                ("pair", *labels, "difference", "95 % interval", "z", "q", "differs"),
                [_row(edge) for edge in shown],
            )
        ],
        methods=" ".join(_methods(result)),
    )


def _verdict(result: DifferenceResult) -> Iterator[str]:
    pairs = counted(len(result.edges), "pair")
    yield (
        f"Of {pairs} {result.n_differing} found to differ between {result.first.label} and "
        f"{result.second.label} (false discovery rate {result.fdr:g})."
    )
    if result.largest_z.p_value is not None and result.sum_of_squares.p_value is not None:
        yield (
            f"The networks as a whole differ with p = {result.largest_z.p_value:.2g} by the "
            f"largest |z| and p = {result.sum_of_squares.p_value:.2g} by the sum of z²."
        )
    else:
        yield f"The networks as a whole have no p-value: {result.reason}."


def _facts(result: DifferenceResult) -> Iterator[str]:
    sizes = [
        f"{side.label}: {counted(side.n_rows, 'row')}{in_clusters(side.n_clusters)}"
        for side in (result.first, result.second)
    ]
    yield f"{'; '.join(sizes)}."
    if result.n_unlabelled:
        yield f"Of neither group, and left out: {counted(result.n_unlabelled, 'row')}."
    if unknown := sum(edge.z is None for edge in result.edges):
        yield f"Without a standard error in one of the networks: {counted(unknown, 'pair')}."
    yield from failures(result.permutation_failures, result.n_permutations, "permutation")


def _row(edge: DifferenceEdgeRead) -> Row:
    cells = [
        *map(number, (edge.first, edge.second, edge.difference)),
        interval(edge.lower, edge.upper),
        number(edge.z, "+.2f"),
        number(edge.q_value, ".2g"),
        "yes" if edge.differs else "no",
    ]
    return Row(f"{edge.source} – {edge.target}", cells, is_bold=edge.differs)


def _methods(result: DifferenceResult) -> Iterator[str]:
    yield (
        "Partial correlations of two networks were compared by z, their difference in its standard "
        "errors, with 95 % intervals and tests by Student's t (degrees of freedom by Welch, 1947), "
        "and called different where the q-value (Benjamini and Hochberg, 1995) is at most "
        f"{result.fdr:g}."
    )
    if result.held is not None:
        yield (
            "Networks of groups of rows have the transforms, the linear term and the penalty that "
            "the fit to all rows chose."
        )
    if result.n_ok:
        has_clusters = result.first.n_clusters is not None or result.second.n_clusters is not None
        moved = "clusters of rows" if has_clusters else "the rows"
        yield (
            "The networks as a whole were compared by the largest |z| and by the sum of z², with "
            f"p-values (Phipson and Smyth, 2010) from {result.n_ok} permutations of {moved} "
            "(van Borkulo et al., 2022)."
        )
