import json

import numpy as np

from service.results.vocabulary import EdgeScore
from worker.artefacts.exports.roc import (
    NO_TRUTH,
    adjacency,
    roc_artefacts,
    roc_curves,
    score_documents,
)

# Three variables; K_ab = 0.5 is the one true edge, K_ac = -0.8 a strong false one.
PRECISION = np.array([[1.0, 0.5, -0.8], [0.5, 1.0, 0.1], [-0.8, 0.1, 4.0]])
TRUTH = adjacency(["a", "b", "c"], {("a", "b")})


def test_each_score_has_the_area_worked_out_by_hand() -> None:
    areas = {score: curve.auc for score, curve in roc_curves(PRECISION, TRUTH).items()}
    assert areas == {
        EdgeScore.ABS_PRECISION: 0.5,  # 0.5 loses to 0.8 and beats 0.1
        EdgeScore.PRECISION: 1.0,  # 0.5 beats 0.1 and -0.8
        EdgeScore.ABS_SCALED_INTERACTION: 1.0,  # 0.5 beats 0.4 and 0.05
        EdgeScore.SCALED_INTERACTION: 0.0,  # -0.5 loses to 0.4 and -0.05
    }


def test_roc_files_hold_the_curve_and_an_infinite_threshold_is_null() -> None:
    artefacts = {a.name: a.content for a in roc_artefacts(roc_curves(PRECISION, TRUTH))}
    document = json.loads(artefacts["roc/abs_precision.json"])
    assert document["fpr"] == [0, 0.5, 0.5, 1]
    assert document["tpr"] == [0, 0, 1, 1]
    assert document["thresholds"] == [None, 0.8, 0.5, 0.1]
    assert document["auc"] == 0.5
    assert (document["n_pairs"], document["n_true_edges"]) == (3, 1)
    assert set(artefacts) == {f"roc/{score}.json" for score in EdgeScore}


def test_a_true_graph_without_edges_gives_null_and_a_reason() -> None:
    curves = roc_curves(PRECISION, np.zeros((3, 3), dtype=bool))
    for artefact in roc_artefacts(curves):
        document = json.loads(artefact.content)
        assert document["auc"] is None
        assert "no pair" in document["reason"]
    assert all(score.auc is None and score.reason for score in score_documents(curves))


def test_without_a_true_graph_every_score_says_so() -> None:
    documents = score_documents(None)
    assert [document.score for document in documents] == list(EdgeScore)
    assert {document.reason for document in documents} == {NO_TRUTH}
