"""True graphs: what is accepted, and how it is kept."""

import itertools

import pytest

from service.datasets.graph_documents import MOST_EDGES

PATH = "/v1/datasets/{}/ground-truth"
DECOMPOSED = "cafe\u0301"


@pytest.fixture
def path(client) -> str:
    """Return the address of the true graph of a data set with three variables."""
    dataset = client.post("/v1/datasets", content="a,café,c\n1,2,3\n4,5,7\n".encode()).json()
    return PATH.format(dataset["id"])


def pairs(answer) -> list[tuple[str, str]]:
    return [(edge["source"], edge["target"]) for edge in answer.json()["edges"]]


def test_an_edge_list_is_stored_in_the_data_sets_order(client, path):
    edges = [{"source": "c", "target": DECOMPOSED}, {"source": "c", "target": "a"}]
    answer = client.put(path, json={"kind": "edges", "edges": edges})
    assert answer.status_code == 201
    assert pairs(answer) == [("a", "c"), ("café", "c")]
    assert (answer.json()["n_edges"], answer.json()["n_pairs"]) == (2, 3)
    assert client.get(path).json() == answer.json()


def test_a_second_graph_replaces_the_first(client, path):
    client.put(path, json={"kind": "edges", "edges": [{"source": "a", "target": "c"}]})
    answer = client.put(path, json={"kind": "edges", "edges": []})
    assert (answer.status_code, pairs(answer)) == (200, [])


@pytest.mark.parametrize(
    ("names", "expected"),
    [(None, [("a", "café"), ("café", "c")]), (["c", "a", DECOMPOSED], [("a", "café"), ("a", "c")])],
)
def test_a_matrix_is_read_in_its_own_order(client, path, names, expected):
    matrix = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    answer = client.put(path, json={"kind": "adjacency", "names": names, "matrix": matrix})
    assert answer.status_code == 201
    assert pairs(answer) == expected


@pytest.mark.parametrize(
    ("document", "pointers"),
    [
        ({"kind": "edges", "edges": [{"source": "a", "target": "a"}]}, ["/edges/0"]),
        (
            {"kind": "edges", "edges": [{"source": "a", "target": "x"}]},
            ["/edges/0/target"],
        ),
        (
            {
                "kind": "edges",
                "edges": [{"source": "a", "target": "c"}, {"source": "c", "target": "a"}],
            },
            ["/edges/1"],
        ),
        ({"kind": "adjacency", "matrix": [[0, 1, 0], [0, 0, 0], [0, 0, 0]]}, ["/matrix/0/1"]),
        ({"kind": "adjacency", "matrix": [[0, 0, 0], [0, 1, 0], [0, 0, 0]]}, ["/matrix/1/1"]),
        ({"kind": "adjacency", "matrix": [[0, 0], [0, 0]]}, ["/matrix", "/matrix/0", "/matrix/1"]),
        ({"kind": "adjacency", "names": ["a", "c"], "matrix": [[0, 0], [0, 0]]}, ["/names"]),
        (
            {"kind": "adjacency", "names": ["a", "c", "c"], "matrix": [[0] * 3] * 3},
            ["/names/2", "/names"],
        ),
    ],
)
def test_what_is_no_undirected_graph_of_the_variables_is_refused(client, path, document, pointers):
    answer = client.put(path, json=document)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation-failed")
    assert [item["pointer"] for item in answer.json()["errors"]] == pointers
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "document",
    [
        {"edges": []},
        {"kind": "directed", "edges": []},
        {"kind": "adjacency", "matrix": [[0, 0.5], [0.5, 0]]},
        {"kind": "adjacency", "matrix": [[0, 2], [2, 0]]},
        {"kind": "edges", "edges": [["a", "c"]]},
        {"kind": "edges", "edges": [], "directed": True},
    ],
)
def test_a_document_of_another_shape_is_refused(client, path, document):
    assert client.put(path, json=document).status_code == 422


FIELDS = {f"field{number}": 0 for number in range(1000)}


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "edges", "edges": [], **FIELDS},
        {"kind": "edges", "edges": [{"source": "a", "target": "c", **FIELDS}]},
        {"kind": "adjacency", "matrix": [[0] * 3] * 3, **FIELDS},
    ],
)
def test_of_many_unknown_fields_there_is_one_complaint(client, path, document):
    answer = client.put(path, json=document)
    assert answer.status_code == 422
    [item] = answer.json()["errors"]
    assert "100 fields at most" in item["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        {"kind": "edges", "edges": [{"source": "x", "target": "y"}] * 1000},
        {"kind": "adjacency", "names": ["a"] * 1000, "matrix": []},
        {"kind": "adjacency", "matrix": [[0]] * 1000},
        {"kind": "adjacency", "matrix": [[1] * 1000] * 1000},
    ],
)
def test_of_many_faults_the_first_are_told(client, document):
    names = [f"v{number}" for number in range(1000)]
    rows = [",".join(str(number % k) for number in range(1000)) for k in (5, 7)]
    dataset = client.post("/v1/datasets", content="\n".join([",".join(names), *rows])).json()
    answer = client.put(PATH.format(dataset["id"]), json=document)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("100 or more faults")
    assert len(answer.json()["errors"]) == 100


def test_a_graph_can_be_detached(client, path):
    client.put(path, json={"kind": "edges", "edges": []})
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert client.delete(path).status_code == 404


@pytest.mark.slow
def test_a_graph_of_more_edges_than_may_be_is_refused(client):
    num_names = 450  # which make 101,025 pairs
    names = [f"v{number}" for number in range(num_names)]
    rows = [",".join(str(number % k) for number in range(num_names)) for k in (5, 7)]
    dataset = client.post("/v1/datasets", content="\n".join([",".join(names), *rows])).json()
    path = PATH.format(dataset["id"])
    matrix = [[int(i != j) for j in range(num_names)] for i in range(num_names)]
    answer = client.put(path, json={"kind": "adjacency", "matrix": matrix})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/matrix")
    pairs = [{"source": a, "target": b} for a, b in itertools.combinations(names, 2)]
    answer = client.put(path, json={"kind": "edges", "edges": pairs})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/edges")
    answer = client.put(path, json={"kind": "edges", "edges": pairs[:MOST_EDGES]})
    assert (answer.status_code, answer.json()["n_edges"]) == (201, MOST_EDGES)
