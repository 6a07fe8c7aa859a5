"""The estimated graph as node-link JSON, GraphML and an edge table."""

import json
from collections.abc import Sequence
from io import BytesIO

import networkx as nx

from service.results.edges import Edge
from service.results.formats import MediaType
from service.results.outcome import Artefact
from worker.exports.csv_text import csv_bytes

EDGE_COLUMNS = (
    "source",
    "target",
    "weight",
    "partial_correlation",
    "precision",
    "sign",
    "selected",
    "n_pairwise",
)


def graph_artefacts(
    names: Sequence[str], edges: Sequence[Edge], edge_threshold: float
) -> list[Artefact]:
    """Return `graph`.json, .graphml and .csv: every variable a node, every pair an edge.

    `selected` marks the pairs that meet the threshold, so a reader who wants them alone filters by
    it and the others are not lost. The rows of the CSV file are ranked, strongest first.
    """
    graph = build_graph(names, edges, edge_threshold)
    rows = ([edge.source, edge.target, *_attributes(edge).values()] for edge in edges)
    return [
        Artefact("graph.json", MediaType.JSON, _node_link(graph)),
        Artefact("graph.graphml", MediaType.GRAPHML, _graphml(graph)),
        Artefact("graph.csv", MediaType.CSV, csv_bytes(EDGE_COLUMNS, rows)),
    ]


def build_graph(names: Sequence[str], edges: Sequence[Edge], edge_threshold: float) -> nx.Graph:
    """Return the networkx graph that the files hold."""
    graph = nx.Graph(edge_threshold=edge_threshold)
    graph.add_nodes_from(names)
    graph.add_edges_from((edge.source, edge.target, _attributes(edge)) for edge in edges)
    return graph


def _attributes(edge: Edge) -> dict[str, str | float | bool]:
    """Return an edge's attributes; `weight` is the size that graph tools expect, never negative."""
    rho = edge.partial_correlation
    return {
        "weight": abs(rho),
        "partial_correlation": rho,
        "precision": edge.precision,
        "sign": "positive" if rho > 0 else "negative" if rho < 0 else "none",
        "selected": edge.selected,
        "n_pairwise": edge.n_pairwise,
    }


def _node_link(graph: nx.Graph) -> bytes:
    document = nx.node_link_data(graph, edges="edges")
    return json.dumps(document, allow_nan=False, ensure_ascii=False).encode()


def _graphml(graph: nx.Graph) -> bytes:
    """Return GraphML; a character that XML cannot hold becomes its code point, such as U+0007."""
    content = BytesIO()
    writable = nx.relabel_nodes(graph, {name: _xml_text(name) for name in graph})
    nx.write_graphml_xml(writable, content, named_key_ids=True)
    return content.getvalue()


def _xml_text(name: str) -> str:
    return "".join(
        c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else f"U+{ord(c):04X}"
        for c in name
    )
