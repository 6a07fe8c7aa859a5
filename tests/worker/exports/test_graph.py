import csv
import json
from io import BytesIO, StringIO

import networkx as nx
import pytest

from service.results.edges import Edge
from worker.exports.graph import build_graph, graph_artefacts

NAMES = ["体重", 'x<y & "z"', "=f", "alone", "line\nbreak"]
EDGES = [
    Edge("体重", "=f", -0.4, 0.37, True, 90),
    Edge('x<y & "z"', "体重", 1 / 3, -1e-17, False, 80),
    Edge("=f", "line\nbreak", 0.0, 0.0, False, 70),
]


@pytest.fixture
def files() -> dict[str, bytes]:
    return {artefact.name: artefact.content for artefact in graph_artefacts(NAMES, EDGES, 0.1)}


def same_graph(one: nx.Graph, other: nx.Graph) -> bool:
    return (
        list(one.nodes) == list(other.nodes)
        and nx.utils.edges_equal(one.edges(data=True), other.edges(data=True))
        and one.graph["edge_threshold"] == other.graph["edge_threshold"]
    )


def test_graphml_reloads_to_the_same_graph(files: dict[str, bytes]) -> None:
    reloaded = nx.read_graphml(BytesIO(files["graph.graphml"]))
    assert same_graph(reloaded, build_graph(NAMES, EDGES, 0.1))


def test_node_link_json_reloads_to_the_same_graph(files: dict[str, bytes]) -> None:
    reloaded = nx.node_link_graph(json.loads(files["graph.json"]), edges="edges")
    assert same_graph(reloaded, build_graph(NAMES, EDGES, 0.1))


def test_a_variable_without_edges_stays_a_node(files: dict[str, bytes]) -> None:
    assert "alone" in nx.read_graphml(BytesIO(files["graph.graphml"]))


def test_the_edge_table_keeps_rank_and_numbers(files: dict[str, bytes]) -> None:
    rows = list(csv.DictReader(StringIO(files["graph.csv"].decode())))
    assert [float(row["partial_correlation"]) for row in rows] == [0.37, -1e-17, 0.0]
    assert [row["sign"] for row in rows] == ["positive", "negative", "none"]
    assert [row["selected"] for row in rows] == ["true", "false", "false"]
    assert float(rows[1]["precision"]) == 1 / 3
    assert rows[0]["target"] == "'=f"


def test_a_character_that_xml_cannot_hold_does_not_break_graphml() -> None:
    edges = [Edge("bell\x07", "b", 0.1, -0.2, True, 5)]
    files = {a.name: a.content for a in graph_artefacts(["bell\x07", "b"], edges, 0.1)}
    assert list(nx.read_graphml(BytesIO(files["graph.graphml"]))) == ["bellU+0007", "b"]
