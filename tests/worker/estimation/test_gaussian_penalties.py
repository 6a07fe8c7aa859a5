"""A Gaussian's penalty, how it was chosen and what came of it reach the result."""

from collections.abc import Callable
from typing import Any

import pytest

from service.jobs.vocabulary import PenaltyChoice, PenaltyKind, Selection
from service.results.schemas import EstimationResult
from worker.estimation import EstimationRequest, estimate

MakeRequest = Callable[..., EstimationRequest]


def document(make_request: MakeRequest, estimator: dict[str, Any]) -> EstimationResult:
    choices = {"model": {"kind": "gaussian"}, "estimator": {"tol": 1e-2, **estimator}}
    result = estimate(make_request(**choices), lambda step: None).document
    assert isinstance(result, EstimationResult)
    return result


@pytest.mark.parametrize("kind", ["vnce", "nce"])
def test_auto_is_adaptive_and_chosen_by_held_out_rows(make_request: MakeRequest, kind: str) -> None:
    penalty = document(make_request, {"kind": kind}).penalty
    assert penalty is not None
    assert penalty.requested is PenaltyChoice.AUTO
    assert penalty.selection is Selection.HELD_OUT
    assert penalty.kind is penalty.fitted_kind is PenaltyKind.ADAPTIVE
    (chosen,) = [step for step in penalty.path if step.chosen]
    assert penalty.strength == chosen.strength


@pytest.mark.parametrize("selection", ["ebic", "stability"])
def test_a_graph_that_was_chosen_has_exact_zeros(make_request: MakeRequest, selection: str) -> None:
    estimator = {
        "kind": "vnce",
        "penalty_kind": "l1",
        "selection": selection,
        "n_subsamples": 10,
        "inclusion_threshold": 0.9,
    }
    result = document(make_request, estimator)
    assert result.penalty is not None
    (chosen,) = [step for step in result.penalty.path if step.chosen]
    K = result.precision
    num_edges = sum(K[i][j] != 0 for i in range(4) for j in range(i))
    assert num_edges == chosen.n_edges < 6
    assert (result.stability is not None) == (selection == "stability")
