"""A Gaussian's penalty, how it was chosen and what came of it reach the result."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from service.jobs.vocabulary import LassoChoice, PenaltyChoice, PenaltyKind, Selection
from service.results.schemas import EstimationResult
from worker.jobs.estimation import EstimationRequest, estimate

MakeRequest = Callable[..., EstimationRequest]


def document(make_request: MakeRequest, estimator: dict[str, Any]) -> EstimationResult:
    choices = {"model": {"kind": "gaussian"}, "estimator": {"tol": 1e-2, **estimator}}
    result = estimate(make_request(**choices), lambda step: None).document
    assert isinstance(result, EstimationResult)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["vnce", "nce"])
def test_an_open_kind_is_chosen_with_its_strength_by_held_out_rows(
    make_request: MakeRequest, kind: str
) -> None:
    penalty = document(make_request, {"kind": kind}).penalty
    assert penalty is not None
    assert penalty.requested is PenaltyChoice.AUTO
    assert penalty.selection is Selection.HELD_OUT
    assert penalty.kind is PenaltyKind.AUTO
    kinds = [kind for kind, _ in itertools.groupby(step.kind for step in penalty.path)]
    assert kinds == [PenaltyKind.ADAPTIVE, PenaltyKind.CENTRED_RIDGE]
    (chosen,) = [step for step in penalty.path if step.chosen]
    assert penalty.fitted_kind is chosen.kind
    strengths = [step.strength for step in penalty.path if step.kind is chosen.kind]
    assert penalty.strength is not None
    # A mean of the strengths that do about as well, and the chosen step the nearest of them.
    assert min(strengths) <= penalty.strength <= max(strengths)
    distances = {s: abs(math.log(s / penalty.strength)) for s in strengths}
    assert min(distances, key=lambda s: distances[s]) == chosen.strength


@pytest.mark.slow
def test_a_kind_that_was_asked_for_is_the_only_one_tried(make_request: MakeRequest) -> None:
    penalty = document(make_request, {"kind": "vnce", "penalty_kind": "adaptive"}).penalty
    assert penalty is not None
    assert penalty.kind is penalty.fitted_kind is PenaltyKind.ADAPTIVE
    assert {step.kind for step in penalty.path} == {PenaltyKind.ADAPTIVE}


@pytest.mark.slow
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
    # K has no penalty: it is fitted to the graph.
    assert (result.penalty.kind, result.penalty.fitted_kind) == (PenaltyKind.L1, None)
    assert result.penalty.strength is None
    assert (result.stability is not None) == (selection == "stability")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "selection"),
    [(LassoChoice.EBIC, Selection.EBIC), (LassoChoice.CV, Selection.HELD_OUT)],
)
def test_a_chosen_lasso_has_its_whole_path_in_the_document(
    make_request: MakeRequest, choice: LassoChoice, selection: Selection
) -> None:
    estimator = {"kind": "gaussian-em", "penalty": choice.value}
    penalty = document(make_request, estimator).penalty
    assert penalty is not None
    assert (penalty.requested, penalty.selection) == (choice, selection)
    assert penalty.kind is penalty.fitted_kind is PenaltyKind.L1
    assert len(penalty.path) == 12
    (chosen,) = [step for step in penalty.path if step.chosen]
    assert penalty.strength == chosen.strength
    errors = [step.standard_error is None for step in penalty.path]
    assert errors == [choice is LassoChoice.EBIC] * 12


@pytest.mark.slow
def test_a_lasso_that_has_no_penalty_is_said_to_have_none(make_request: MakeRequest) -> None:
    assert document(make_request, {"kind": "gaussian-em"}).penalty is None
    given = document(make_request, {"kind": "gaussian-em", "penalty": 0.2}).penalty
    assert given is not None
    assert (given.strength, given.fitted_kind, given.path) == (0.2, PenaltyKind.L1, [])
    # One EM iteration has not settled, and its lasso is none the less of the strength that it says.
    stopped = document(make_request, {"kind": "gaussian-em", "penalty": 0.2, "max_iter": 1})
    assert not stopped.convergence.converged
    assert stopped.penalty is not None
    assert stopped.penalty.strength == 0.2


@pytest.mark.slow
def test_a_ridge_of_score_matching_says_how_it_was_chosen(make_request: MakeRequest) -> None:
    kind = "gaussian-score-matching"
    assert document(make_request, {"kind": kind}).penalty is None
    chosen = document(make_request, {"kind": kind, "penalty": "cv"}).penalty
    assert chosen is not None
    assert (chosen.kind, chosen.fitted_kind, chosen.requested) == ("ridge", "ridge", "cv")
    assert chosen.selection == "held-out"
    assert [step.strength for step in chosen.path if step.chosen] == [chosen.strength]
