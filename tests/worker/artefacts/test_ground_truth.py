import csv
from itertools import combinations
from pathlib import Path

import numpy as np

import worker
from worker.artefacts.exports.roc import adjacency
from worker.artefacts.ground_truth import moral_graph, pair

DATA = Path(worker.__file__).parent / "data"


def test_moral_graph_joins_the_parents_of_a_common_child() -> None:
    assert moral_graph([("a", "c"), ("b", "c")]) == {("a", "c"), ("b", "c"), ("a", "b")}


def test_moral_graph_of_a_chain_has_no_new_edge() -> None:
    assert moral_graph([("a", "b"), ("b", "c")]) == {("a", "b"), ("b", "c")}


def test_the_accepted_protein_network_has_18_edges_and_20_moral_pairs_of_55() -> None:
    with (DATA / "sachs_consensus_edges.csv").open(newline="") as file:
        directed = [(row["Cause"], row["Effect"]) for row in csv.DictReader(file)]
    names = {name for edge in directed for name in edge}
    assert len(directed) == 18
    assert len(list(combinations(names, 2))) == 55
    moral = moral_graph(directed)
    assert len(moral) == 20
    assert moral - {pair(*edge) for edge in directed} == {("PKA", "PKC"), ("PIP3", "PKA")}


def test_adjacency_leaves_out_variables_that_are_not_used() -> None:
    expected = np.array([[False, True], [True, False]])
    assert np.array_equal(adjacency(["b", "a"], {("a", "b"), ("a", "c")}), expected)


def test_the_shipped_protein_table_is_complete_and_non_negative() -> None:
    with (DATA / "sachs.csv").open(newline="") as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    assert np.array(rows).shape == (853, 11)
    assert np.min(rows) >= 0
