"""How well an estimate ranks the edges of a true graph, under every score."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from service.results.file_schemas import RocRead
from service.results.formats import MediaType
from service.results.outcome import Artefact
from service.results.schemas import ScoreRead
from service.results.vocabulary import EdgeScore
from vnce_engine.inference import metrics
from vnce_engine.inference.metrics import EdgeROC
from worker.artefacts.ground_truth import Pair

NO_TRUTH = "no ground truth was attached to the data set when the job was submitted"


def adjacency(names: Sequence[str], truth: Iterable[Pair]) -> NDArray[np.bool_]:
    """Return the symmetric adjacency matrix (d, d) among `names`; other pairs are left out."""
    index = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.bool_)
    for one, other in truth:
        if one in index and other in index:
            i, j = index[one], index[other]
            matrix[i, j] = matrix[j, i] = True
    return matrix


def roc_curves(
    precision: NDArray[np.float64], truth: NDArray[np.bool_]
) -> dict[EdgeScore, EdgeROC]:
    """Return the curve of every score for a precision matrix (d, d) and a true graph (d, d)."""
    return {
        score: metrics.edge_roc(
            metrics.edge_scores(precision, metrics.EdgeScore(score.value)), truth
        )
        for score in EdgeScore
    }


def score_documents(curves: Mapping[EdgeScore, EdgeROC] | None) -> list[ScoreRead]:
    """Return the summary of every score; without curves each says that no truth is known."""
    if curves is None:
        return [
            ScoreRead(score=score, auc=None, average_precision=None, reason=NO_TRUTH)
            for score in EdgeScore
        ]
    return [
        ScoreRead(
            score=score,
            auc=curve.auc,
            average_precision=curve.average_precision,
            reason=curve.reason,
        )
        for score, curve in curves.items()
    ]


def roc_artefacts(curves: Mapping[EdgeScore, EdgeROC]) -> list[Artefact]:
    """Return one JSON file a score, `roc/<score>.json`."""
    return [
        Artefact(
            f"roc/{score}.json",
            MediaType.JSON,
            _document(score, curve).model_dump_json().encode(),
        )
        for score, curve in curves.items()
    ]


def _document(score: EdgeScore, curve: EdgeROC) -> RocRead:
    return RocRead(
        score=score,
        fpr=list(curve.fpr),
        tpr=list(curve.tpr),
        thresholds=list(curve.thresholds),
        auc=curve.auc,
        average_precision=curve.average_precision,
        n_pairs=curve.num_pairs,
        n_true_edges=curve.num_edges,
        reason=curve.reason,
    )
