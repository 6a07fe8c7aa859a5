"""Every graph file, read by other tools' readers, gives the graph back."""

import csv
import html
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO, StringIO
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.results.edges import Edge
from service.results.vocabulary import EdgeRule, Verdict
from tests.result_files import GRAPH_TYPES
from worker.artefacts.exports import graph as graph_module
from worker.artefacts.exports.graph import (
    build_graph,
    graph_artefacts,
    left_out_warnings,
    tabulated_pairs,
)

NAMES = ["体重", 'x<y & "z"', "=f", "alone", "line\nbreak", "12", "&amp; \\n", "end\\", "🐧", "n0"]
EDGES = [
    Edge("体重", "=f", -0.4, 0.37, 0.37, True, 90),
    Edge("12", "end\\", 0.4, -0.35, -0.35, True, 12),
    Edge('x<y & "z"', "体重", 1 / 3, -1e-17, -1e-17, False, 80),
    Edge("&amp; \\n", "🐧", 1e-300, -5e-324, -5e-324, False, 2**31 - 1),
    Edge("=f", "line\nbreak", 0.0, 0.0, 0.0, False, 70),
    Edge("n0", "12", 1e22, 1e-5, 1e-5, False, 0),
]
# So that the graph files hold them all.
SELECTED = [replace(edge, selected=True) for edge in EDGES]


def read_node_link(content: bytes) -> nx.Graph:
    return nx.node_link_graph(json.loads(content), edges="edges")


def read_graphml(content: bytes) -> nx.Graph:
    return nx.read_graphml(BytesIO(content))


def read_gexf(content: bytes) -> nx.Graph:
    graph = nx.read_gexf(BytesIO(content), relabel=True)
    for _, _, values in graph.edges(data=True):
        del values["id"]
    description = ElementTree.fromstring(content).findtext(".//{*}meta/{*}description", "")
    graph.graph = {
        key: typed(key, value)
        for key, value in (line.split(": ") for line in description.splitlines())
    }
    return graph


def read_gml(content: bytes) -> nx.Graph:
    graph = nx.parse_gml(content.decode("ascii"))
    for _, _, values in graph.edges(data=True):
        values["selected"] = bool(values["selected"])
    return graph


def read_dot(content: bytes) -> nx.Graph:
    pydot = pytest.importorskip("pydot", reason="pydot reads DOT")
    with warnings.catch_warnings():
        # Its grammar is written with names that pyparsing has since replaced.
        warnings.simplefilter("ignore", DeprecationWarning)
        [parsed] = pydot.graph_from_dot_data(content.decode())
    defaults = parsed.get_graph_defaults()[0]
    graph = nx.Graph(**{key: typed(key, unquote(value)) for key, value in defaults.items()})
    # To pydot the defaults of the graph are a node named `graph`.
    nodes = [node for node in parsed.get_node_list() if node.get_name() != "graph"]
    names = {node.get_name(): drawn(node.get("label")) for node in nodes}
    graph.add_nodes_from(names.values())
    for edge in parsed.get_edge_list():
        attributes = edge.get_attributes().items()
        values = {key: typed(key, unquote(value)) for key, value in attributes}
        graph.add_edge(names[edge.get_source()], names[edge.get_destination()], **values)
    return graph


def typed(key: str, text: str) -> str | float | bool:
    """Return the value of an attribute that a format has written as text."""
    if key in ("sign", "verdict", "edge_rule"):
        return text
    if key == "selected":
        return text == "true"
    return int(text) if key.startswith("n_") else float(text)


def unquote(text: str) -> str:
    """Undo what DOT's grammar does to any quoted string."""
    assert text[0] == text[-1] == '"'
    return text[1:-1].replace('\\"', '"')


def drawn(label: str) -> str:
    """Return what Graphviz draws for a quoted label: escapes and entities undone."""
    undone = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], unquote(label))
    return html.unescape(undone)


def read_cyjs(content: bytes) -> nx.Graph:
    graph = nx.cytoscape_graph(json.loads(content))
    for name, values in graph.nodes(data=True):
        assert values == {"id": name, "name": name, "value": name}
        values.clear()
    for _, _, values in graph.edges(data=True):
        del values["source"], values["target"]
    return graph


def read_cx2(content: bytes) -> nx.Graph:
    """Read CX2 by the rules of its specification, which demand every assertion here."""
    first, *fragments, last = json.loads(content)
    assert first == {"CXVersion": "2.0", "hasFragments": False}
    assert last["status"][0]["success"] is True
    aspects = {name: elements for fragment in fragments for name, elements in fragment.items()}
    declared = {entry["name"]: entry["elementCount"] for entry in aspects.pop("metaData")}
    assert declared == {name: len(elements) for name, elements in aspects.items()}
    [types] = aspects["attributeDeclarations"]
    python_types = {"string": str, "double": float, "integer": int, "boolean": bool}

    def checked(aspect: str, values: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            assert type(value) is python_types[types[aspect][name]["d"]]
        return values

    [about] = aspects["networkAttributes"]
    graph = nx.Graph(**checked("networkAttributes", about))
    names = {node["id"]: checked("nodes", node["v"])["name"] for node in aspects["nodes"]}
    graph.add_nodes_from(names.values())
    for edge in aspects["edges"]:
        graph.add_edge(names[edge["s"]], names[edge["t"]], **checked("edges", edge["v"]))
    assert len({edge["id"] for edge in aspects["edges"]}) == len(aspects["edges"])
    return graph


READERS: dict[str, Callable[[bytes], nx.Graph]] = {
    "json": read_node_link,
    "graphml": read_graphml,
    "gexf": read_gexf,
    "gml": read_gml,
    "dot": read_dot,
    "cyjs": read_cyjs,
    "cx2": read_cx2,
}


def write(names: list[str], edges: list[Edge]) -> dict[str, bytes]:
    return {file.name: file.content for file in graph_artefacts(names, edges, RULE, 0.1)}


# Of a precision matrix that has no partial correlations.
INDEFINITE = [replace(edge, partial_correlation=None, selected=False) for edge in EDGES]
RULE = EdgeRule.FALSE_DISCOVERY_RATE
JUDGEMENT = {
    "debiased": 0.5,
    "standard_error": 0.1,
    "lower": 0.3,
    "upper": 0.7,
    "p_value": 1e-6,
    "q_value": 6e-6,
    "verdict": Verdict.PRESENT,
}
# Of the last pair nothing is known.
JUDGED = [
    *(replace(edge, **JUDGEMENT) for edge in SELECTED[:-1]),
    replace(SELECTED[-1], verdict=Verdict.UNDECIDED),
]
INCLUSIVE = [replace(edge, inclusion=0.25) for edge in SELECTED]
# Of the first pair too few half-samples say something.
PARTLY = [SELECTED[0], *INCLUSIVE[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "read"), READERS.items())
@pytest.mark.parametrize(
    "edges",
    [SELECTED, INCLUSIVE, PARTLY, JUDGED, []],
    ids=["edges", "inclusion", "some inclusions", "judged", "no edges"],
)
def test_file_reloads_to_the_same_graph(
    ending: str, read: Callable[[bytes], nx.Graph], edges: list[Edge]
) -> None:
    original = build_graph(NAMES, edges, RULE, 0.1)
    assert original.number_of_edges() == len(edges)
    reloaded = read(write(NAMES, edges)[f"graph.{ending}"])
    assert list(reloaded.nodes) == NAMES
    assert nx.utils.edges_equal(reloaded.edges(data=True), original.edges(data=True))
    assert reloaded.graph.items() >= original.graph.items()


@pytest.mark.parametrize(("ending", "read"), READERS.items())
def test_graph_files_hold_the_selected_pairs_and_the_table_all(
    ending: str, read: Callable[[bytes], nx.Graph]
) -> None:
    files = write(NAMES, EDGES)
    reloaded = read(files[f"graph.{ending}"])
    assert {frozenset(pair) for pair in reloaded.edges} == {
        frozenset(pair) for pair in (("体重", "=f"), ("12", "end\\"))
    }
    assert list(reloaded.nodes) == NAMES
    assert (reloaded.graph["n_pairs"], reloaded.graph["n_pairs_written"]) == (45, 2)
    assert len(list(csv.DictReader(StringIO(files["graph.csv"].decode(), newline="")))) == 6


# networkx reads these labels in GML as an empty tuple and list.
EMPTY_TO_NETWORKX = ("()", "[]")
# What a data set may name its columns: trimmed, with no control character. XML knows no U+FFFE.
COLUMN_NAMES = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=12,
).filter(lambda name: name == name.strip() and name not in EMPTY_TO_NETWORKX)


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "read"), READERS.items())
@given(names=st.lists(COLUMN_NAMES, min_size=2, max_size=4, unique=True))
def test_any_name_of_a_column_comes_back(
    ending: str, read: Callable[[bytes], nx.Graph], names: list[str]
) -> None:
    edges = [Edge(names[0], names[1], -0.4, 0.4, 0.4, True, 9)]
    reloaded = read(write(names, edges)[f"graph.{ending}"])
    assert list(reloaded) == names
    assert reloaded.has_edge(*names[:2])


def test_the_edge_table_keeps_rank_and_numbers() -> None:
    rows = list(csv.DictReader(StringIO(write(NAMES, EDGES)["graph.csv"].decode(), newline="")))
    assert [float(row["partial_correlation"]) for row in rows] == [
        edge.partial_correlation for edge in EDGES
    ]
    signs = ["positive", "negative", "negative", "negative", "none", "positive"]
    assert [row["sign"] for row in rows] == signs
    assert [row["selected"] for row in rows] == ["true"] * 2 + ["false"] * 4
    assert float(rows[2]["precision"]) == 1 / 3
    assert rows[0]["target"] == "'=f"


@pytest.mark.parametrize(
    ("edges", "known"),
    [(EDGES, []), (INCLUSIVE, ["inclusion"]), (JUDGED, [*JUDGEMENT]), ([], [])],
    ids=["edges", "inclusion", "judged", "no edges"],
)
def test_the_edge_table_has_a_column_for_every_attribute(
    edges: list[Edge], known: list[str]
) -> None:
    header = write(NAMES, edges)["graph.csv"].decode().splitlines()[0].split(",")
    attributes = ["weight", "scaled_interaction", "partial_correlation", "precision", "sign"]
    attributes += ["selected", "n_pairwise"]
    assert header == ["source", "target", *attributes, *known]


def test_a_pair_without_an_inclusion_has_an_empty_cell_of_it() -> None:
    rows = list(csv.DictReader(StringIO(write(NAMES, PARTLY)["graph.csv"].decode())))
    assert [row["inclusion"] for row in rows] == ["", *["0.25"] * (len(PARTLY) - 1)]


def test_where_there_are_no_partial_correlations_the_edge_table_has_an_empty_column() -> None:
    rows = list(csv.DictReader(StringIO(write(NAMES, INDEFINITE)["graph.csv"].decode())))
    assert {row["partial_correlation"] for row in rows} == {""}
    assert [float(row["scaled_interaction"]) for row in rows] == [
        edge.scaled_interaction for edge in EDGES
    ]


def test_every_format_is_written_as_its_own_type() -> None:
    made = {file.name: file.media_type for file in graph_artefacts(NAMES, EDGES, RULE, 0.1)}
    assert made == {f"graph.{ending}": media_type for ending, media_type in GRAPH_TYPES.items()}


@pytest.mark.parametrize("read", [read_graphml, read_gexf])
def test_characters_that_xml_cannot_hold_become_code_points_and_names_stay_apart(
    read: Callable[[bytes], nx.Graph],
) -> None:
    names = ["bell\x07", "bellU+0007", "\ufffe", "\x07", "U+0007"]
    edges = [Edge(one, other, 0.1, -0.2, -0.2, True, 5) for one, other in combinations(names, 2)]
    ending = "graphml" if read is read_graphml else "gexf"
    graph = read(write(names, edges)[f"graph.{ending}"])
    assert list(graph) == ["bellU+0007_", "bellU+0007", "U+FFFE", "U+0007_", "U+0007"]
    assert graph.number_of_edges() == len(edges)


def test_of_very_many_pairs_the_table_holds_the_selected_ones_and_the_result_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph_module, "MAX_PAIRS", len(EDGES) - 1)
    assert tabulated_pairs(EDGES) == EDGES[:2]
    files = write(NAMES, EDGES)
    assert files["graph.csv"].count(b"true") == 2 == files["graph.csv"].count(b"\n") - 1
    [warning] = left_out_warnings(EDGES)
    assert "2 selected pairs of 6" in warning.message


def test_when_all_of_very_many_pairs_are_selected_the_strongest_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edges = [Edge(one, other, -0.5, 0.5, 0.5, True, 5) for one, other in combinations(NAMES, 2)]
    monkeypatch.setattr(graph_module, "MAX_PAIRS", 10)
    assert tabulated_pairs(edges) == edges[:10]
    assert build_graph(NAMES, edges, RULE, 0.1).number_of_edges() == 10


def test_where_none_can_be_selected_the_strongest_of_very_many_pairs_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph_module, "MAX_PAIRS", 2)
    assert tabulated_pairs(INDEFINITE) == INDEFINITE[:2]
    [warning] = left_out_warnings(INDEFINITE)
    assert "2 strongest pairs of 6" in warning.message


def test_when_no_pair_is_left_out_there_is_nothing_to_warn_of() -> None:
    assert left_out_warnings(EDGES) == []


def test_numbers_in_gml_have_a_digit_after_the_point_which_igraph_needs() -> None:
    lines = write(NAMES, SELECTED)["graph.gml"].decode().splitlines()
    assert "    partial_correlation -1.0E-17" in lines
    assert '    label "=f"' in lines
    assert not [line for line in lines if re.search(r"\d\.E", line)]
