"""Node-link JSON, Cytoscape.js JSON and CX2, the formats in JSON."""

import json
from collections.abc import Mapping
from typing import TypeAlias

import networkx as nx

Value: TypeAlias = str | float | bool


def node_link(graph: nx.Graph) -> bytes:
    """Return what D3 draws and `networkx.node_link_graph` reads with `edges="edges"`."""
    return _encode(nx.node_link_data(graph, edges="edges"))


def cytoscape_json(graph: nx.Graph) -> bytes:
    """Return Cytoscape.js JSON (.cyjs); the nodes' ids are their names."""
    document = nx.cytoscape_data(graph)
    # Cytoscape wants an object here, where networkx writes pairs and reads either.
    document["data"] = dict(document["data"])
    return _encode(document)


def cx2(graph: nx.Graph) -> bytes:
    """Return CX2, the exchange format of Cytoscape and NDEx; nodes are numbered from 0.

    Source: the CX2 specification of the Cytoscape consortium.
    """
    numbers = {name: number for number, name in enumerate(graph)}
    nodes = [{"id": number, "v": {"name": name}} for name, number in numbers.items()]
    edges = [
        {"id": number, "s": numbers[one], "t": numbers[other], "v": values}
        for number, (one, other, values) in enumerate(graph.edges(data=True))
    ]
    declarations = {
        "networkAttributes": _declare(graph.graph),
        "nodes": {"name": {"d": "string"}},
        # An edge need not have all attributes.
        "edges": _declare({name: v for edge in edges for name, v in edge["v"].items()}),
    }
    aspects = {
        "attributeDeclarations": [declarations],
        "networkAttributes": [graph.graph],
        "nodes": nodes,
        "edges": edges,
    }
    meta = [{"name": name, "elementCount": len(aspects[name])} for name in aspects]
    return _encode(
        [
            {"CXVersion": "2.0", "hasFragments": False},
            {"metaData": meta},
            *({name: elements} for name, elements in aspects.items()),
            {"status": [{"error": "", "success": True}]},
        ]
    )


def _declare(values: Mapping[str, Value]) -> dict[str, dict[str, str]]:
    """Return the declaration of attributes by the types of their values."""
    return {name: {"d": _type_name(value)} for name, value in values.items()}


def _type_name(value: Value) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "double"
        case str():
            return "string"


def _encode(document: object) -> bytes:
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.encode()
