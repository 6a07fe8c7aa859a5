"""The report: one HTML file that needs no other, to be read, printed and handed on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.datasets.schemas import DatasetSummary
from service.http.words import counted, in_clusters
from service.jobs.specs.base import planned
from service.results.bootstrap_result import BootstrapResult
from service.results.difference_result import DifferenceResult
from service.results.edges import Edge
from service.results.outcome import Artefact, Outcome
from service.results.schemas import EstimationResult
from worker.artefacts.fitted import FittedNetwork
from worker.artefacts.report.bootstrap import bootstrap_section
from worker.artefacts.report.command import repeating_command
from worker.artefacts.report.difference import difference_section
from worker.artefacts.report.methods import Paragraph, computed_with, methods
from worker.artefacts.report.rendering import report
from worker.artefacts.report.section import MOST_ROWS, Section, pictures

# Of the table of pairs, which is a file of the result, too: all selected ones, but for very many.
_MOST_SELECTED = 200
_FIGURES = {
    "network": "The network: variables as nodes, selected pairs as lines.",
    "intervals": "Partial correlations of the largest size with their 95 % intervals.",
    "heatmap": "All pairs as a matrix of colours.",
    "centrality": "Variables, so far as is known: the sum of the sizes of their present pairs "
    "(strength), that of all their pairs with signs (expected influence), and the share of their "
    "variance that all others explain (predictability).",
}


def report_artefact(
    fitted: FittedNetwork,
    result: EstimationResult,
    summary: DatasetSummary | None,
    artefacts: Sequence[Artefact],
    others: Sequence[Outcome] = (),
) -> Artefact:
    """Return `report.html` of a finished fit, with the figures among its `artefacts`.

    `summary` says how the upload was read; None where that is not known. `others` are bootstraps
    and differences of the network: each has a section.
    """
    sections = [_section(other) for other in others]
    computed = computed_with(result.versions, result.seed)
    said = [methods(fitted.spec, result), *(section.methods for section in sections), computed]
    return report(
        "network.html.jinja",
        f"Network of {result.dataset.name}",
        [Paragraph(" ".join(said))],
        sections,
        result=result,
        verdict=verdict(result),
        columns=_columns(fitted),
        clusters=in_clusters(result.counts.n_clusters),
        missingness=_missingness(fitted),
        changes=[] if summary is None else summary.changes,
        pictures=pictures(artefacts, _FIGURES),
        edges=edges_shown(fitted.edges),
        are_judged=any(edge.verdict is not None for edge in fitted.edges),
        are_correlations=fitted.reason is None,
        command=repeating_command(
            fitted.spec, result.dataset.name, summary, [other.document for other in others]
        ),
    )


def _section(other: Outcome) -> Section:
    match other.document:
        case BootstrapResult() as result:
            return bootstrap_section(result, other.artefacts)
        case DifferenceResult() as result:
            return difference_section(result, other.artefacts)
        case unknown:
            raise TypeError(f"no section of a report is about {type(unknown).__name__}")


def verdict(result: EstimationResult) -> str:
    """Return in a sentence or two how the fit ended and what it found."""
    ending = (
        "The fit converged."
        if result.convergence.converged
        else (
            f"The fit did not converge, so nothing below is reliable: {result.convergence.message}"
        )
    )
    rule, said = result.edge_rule, result.uncertainty
    pairs = counted(rule.n_pairs, "pair")
    if said is not None and said.reason is None:
        return (
            f"{ending} {pairs}: {said.n_present} present (false discovery rate {said.fdr:g}), "
            f"{said.n_absent} absent and {said.n_undecided} undecided."
        )
    why = "" if said is None else f" No confidence intervals: {said.reason}."
    return f"{ending} {pairs}: {rule.n_selected} selected.{why}"


def edges_shown(edges: Sequence[Edge]) -> list[Edge]:
    """Return the pairs that the table holds: those selected, then the strongest to its end."""
    ranked = sorted(edges, key=lambda edge: not edge.selected)
    num_selected = sum(edge.selected for edge in edges)
    return ranked[: max(MOST_ROWS, min(num_selected, _MOST_SELECTED))]


@dataclass(frozen=True)
class _Column:
    """What a variable's cells are; the quartiles are None where none holds a number."""

    name: str
    n_observed: int
    n_missing: int
    share_missing: float
    quartiles: tuple[float, ...] | None


def _columns(fitted: FittedNetwork) -> list[_Column]:
    columns = []
    for name, cells in zip(planned(fitted.spec.variables), fitted.X.T, strict=True):
        values = cells[~np.isnan(cells)]
        num_missing = len(cells) - len(values)
        quartiles = np.quantile(values, np.linspace(0, 1, 5)) if len(values) else None
        columns.append(
            _Column(
                name,
                len(values),
                num_missing,
                num_missing / len(cells),
                None if quartiles is None else tuple(quartiles.tolist()),
            )
        )
    return columns


def _missingness(fitted: FittedNetwork) -> str:
    """Return in a sentence or two how the missing cells lie."""
    missing = np.isnan(fitted.X)
    if not missing.any():
        return "No cell is missing."
    patterns, counts = np.unique(missing, axis=0, return_counts=True)
    names = planned(fitted.spec.variables)
    common = patterns[counts.argmax()]
    gaps = ", ".join(name for name, is_gap in zip(names, common, strict=True) if is_gap)
    fewest = min(fitted.edges, key=lambda edge: edge.n_pairwise)
    return (
        f"{missing.mean():.1%} of the cells are missing; complete rows: "
        f"{(~missing.any(axis=1)).sum()} of {len(missing)}. Missingness patterns: {len(patterns)}; "
        f"in the most frequent, of {counted(int(counts.max()), 'row')}, {gaps or 'nothing'} is "
        f"missing. {fewest.source} and {fewest.target} are observed together in the fewest rows, "
        f"{fewest.n_pairwise}."
    )
