"""The estimated graph as files for other tools and an edge table."""

from collections.abc import Callable, Iterator, Sequence
from math import comb

import networkx as nx

from service.results.edges import Edge
from service.results.formats import MediaType
from service.results.outcome import Artefact
from service.results.schemas import ResultWarning
from service.results.vocabulary import EdgeRule
from worker.artefacts.exports.csv_text import csv_bytes
from worker.artefacts.exports.graph_formats.in_json import cx2, cytoscape_json, node_link
from worker.artefacts.exports.graph_formats.in_text import dot, gml
from worker.artefacts.exports.graph_formats.in_xml import gexf, graphml

# Written where they are known.
_SOMETIMES = (
    "inclusion",
    "debiased",
    "standard_error",
    "lower",
    "upper",
    "p_value",
    "q_value",
    "verdict",
)
_ALWAYS = (
    "weight",
    "scaled_interaction",
    "partial_correlation",
    "precision",
    "sign",
    "selected",
    "n_pairwise",
)
# The table of more pairs holds the selected ones alone, or the strongest where none can be. Graph
# tools draw no more than this, and a pair takes some 250 bytes in each of their formats.
MAX_PAIRS = 50_000
# By the ending of their files.
FORMATS: dict[str, tuple[MediaType, Callable[[nx.Graph], bytes]]] = {
    "json": (MediaType.JSON, node_link),
    "graphml": (MediaType.GRAPHML, graphml),
    "gexf": (MediaType.GEXF, gexf),
    "gml": (MediaType.GML, gml),
    "dot": (MediaType.DOT, dot),
    "cyjs": (MediaType.JSON, cytoscape_json),
    "cx2": (MediaType.JSON, cx2),
}


def graph_artefacts(
    names: Sequence[str], edges: Sequence[Edge], edge_rule: EdgeRule, edge_threshold: float
) -> Iterator[Artefact]:
    """Yield `graph.*` in every format: every variable a node, every selected pair an edge.

    The CSV file alone is a table of all pairs, ranked, strongest first, with a column `selected`;
    of more than `MAX_PAIRS` pairs see `tabulated_pairs`.
    """
    graph = build_graph(names, edges, edge_rule, edge_threshold)
    yield Artefact("graph.csv", MediaType.CSV, _edge_table(tabulated_pairs(edges)))
    for ending, (media_type, write) in FORMATS.items():
        yield Artefact(f"graph.{ending}", media_type, write(graph))


def build_graph(
    names: Sequence[str], edges: Sequence[Edge], edge_rule: EdgeRule, edge_threshold: float
) -> nx.Graph:
    """Return the networkx graph that the files hold: the selected of `edges`."""
    written = [edge for edge in edges if edge.selected][:MAX_PAIRS]
    graph = nx.Graph(
        edge_rule=str(edge_rule),
        edge_threshold=edge_threshold,
        n_pairs=comb(len(names), 2),
        n_pairs_written=len(written),
    )
    graph.add_nodes_from(names)
    graph.add_edges_from((edge.source, edge.target, _attributes(edge)) for edge in written)
    return graph


def tabulated_pairs(edges: Sequence[Edge]) -> Sequence[Edge]:
    """Return all pairs, or of more than `MAX_PAIRS` the selected ones, the strongest of them.

    Where there are no partial correlations none is selected, and they are the strongest of all.
    """
    if len(edges) <= MAX_PAIRS or edges[0].partial_correlation is None:
        return edges[:MAX_PAIRS]
    return [edge for edge in edges if edge.selected][:MAX_PAIRS]


def left_out_warnings(edges: Sequence[Edge]) -> list[ResultWarning]:
    """Return what a result must say of pairs that its table of pairs leaves out."""
    num_written = len(tabulated_pairs(edges))
    if num_written == len(edges):
        return []
    kind = "strongest" if edges[0].partial_correlation is None else "selected"
    return [
        ResultWarning(
            code="graph-files-shortened",
            message=f"The table of pairs, graph.csv, holds {num_written} {kind} pairs of "
            f"{len(edges)}; the list of edges and the matrices hold all.",
            columns=[],
        )
    ]


def _edge_table(edges: Sequence[Edge]) -> bytes:
    known = [name for name in _SOMETIMES if any(getattr(edge, name) is not None for edge in edges)]
    columns = [*_ALWAYS, *known]
    rows = ([edge.source, edge.target, *map(_attributes(edge).get, columns)] for edge in edges)
    return csv_bytes(["source", "target", *columns], rows)


def _attributes(edge: Edge) -> dict[str, str | float | bool]:
    """Return an edge's attributes; `weight` is the size that graph tools expect, never negative.

    `partial_correlation` is there if K is positive definite, `inclusion` if the estimation has
    drawn half-samples and enough of them say something of the pair, the interval and the tests if
    the estimator has standard errors.
    """
    size = edge.scaled_interaction
    sign = "positive" if size > 0 else "negative" if size < 0 else "none"
    rho = edge.partial_correlation
    values = (abs(size), size, rho, edge.precision, sign, edge.selected, edge.n_pairwise)
    attributes = dict(zip(_ALWAYS, values, strict=True))
    attributes |= {name: getattr(edge, name) for name in _SOMETIMES}
    if edge.verdict is not None:
        attributes["verdict"] = str(edge.verdict)  # GraphML's writer takes no word of an enum
    # Most of the formats have no word for a value that is not there.
    return {name: value for name, value in attributes.items() if value is not None}
