"""An estimated network held against a graph that came after it."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from service.jobs.specs.scoring import ScoringSpec
from service.results.outcome import Outcome
from service.results.vocabulary import EdgeScore
from tests.result_files import figure_files
from vnce_engine.runtime.reports import FitStep
from worker.jobs.failures import FitCancelledError
from worker.jobs.scoring import Estimate, score

NAMES = ["b", "a", "c"]
# b - a strong and positive in K, b - c weak and negative, a - c nothing.
PRECISION = np.array([[2.0, 0.9, -0.2], [0.9, 2.0, 0.0], [-0.2, 0.0, 2.0]])
SPEC = ScoringSpec(job_id="job_1", tag=None)


def go_on(_: FitStep) -> bool:
    return False


def scored(*edges: list[str], on_step: Callable[[FitStep], bool] = go_on) -> Outcome:
    return score(SPEC, Estimate(NAMES, PRECISION), list(edges), on_step)


def areas(outcome: Outcome) -> dict[EdgeScore, float | None]:
    return {entry.score: entry.auc for entry in outcome.document.scores}


@pytest.mark.slow
def test_edges_are_matched_by_name_in_either_order() -> None:
    for edge in (["a", "b"], ["b", "a"]):
        assert areas(scored(edge))[EdgeScore.ABS_PRECISION] == 1.0
    assert areas(scored(["a", "c"]))[EdgeScore.ABS_PRECISION] == 0.0


@pytest.mark.slow
def test_signed_scores_rank_by_sign() -> None:
    # Of K = .9, 0, -.2 the edge b - c is last; of scaled interactions -.45, 0, .1 it is first.
    found = areas(scored(["b", "c"]))
    assert (found[EdgeScore.PRECISION], found[EdgeScore.SCALED_INTERACTION]) == (0.0, 1.0)
    # Among the sizes .9, .2, 0 it beats one of the two others.
    assert found[EdgeScore.ABS_SCALED_INTERACTION] == 0.5


def test_a_graph_without_edges_gives_no_area_and_says_why() -> None:
    outcome = scored()
    assert set(areas(outcome).values()) == {None}
    assert all("no pair" in entry.reason for entry in outcome.document.scores)


def test_files_hold_every_curve_and_its_picture() -> None:
    outcome = scored(["a", "b"])
    files = {artefact.name: artefact.content for artefact in outcome.artefacts}
    assert set(files) == {*figure_files("roc"), *(f"roc/{kind}.json" for kind in EdgeScore)}
    for kind, area in areas(outcome).items():
        assert json.loads(files[f"roc/{kind}.json"])["auc"] == area
    assert (outcome.document.n_true_edges, outcome.document.n_pairs) == (1, 3)


def test_a_cancelled_scoring_stops() -> None:
    with pytest.raises(FitCancelledError):
        scored(["a", "b"], on_step=lambda _: True)
