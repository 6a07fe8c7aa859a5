"""The service refuses by the engine's own limits, though it cannot import them."""

import pytest

from service.jobs import compatibility
from service.jobs.specs import base as specs_base
from service.jobs.specs import contrastive as specs
from service.jobs.vocabulary import CoverageGraph, PenaltyKind, RecoveryEstimator, Transform
from service.results import vocabulary as results
from vnce_engine.contrastive import paper_recipe as paper
from vnce_engine.contrastive import truncated_problem as problem
from vnce_engine.data import columns, observations
from vnce_engine.data.table_transform import TRANSFORMS
from vnce_engine.distributions import quadratic
from vnce_engine.experiments import coverage
from vnce_engine.experiments.recovery_estimators import ESTIMATORS
from vnce_engine.inference import metrics
from vnce_engine.penalties import penalty
from vnce_engine.selection import stability


def test_least_number_of_rows() -> None:
    assert specs_base.MIN_ROWS == observations.MIN_ROWS


@pytest.mark.parametrize("num_rows", [6, 7, 12, 19, 20, 21, 350, 500, 501, 10_000])
def test_least_number_of_observed_cells(num_rows: int) -> None:
    assert compatibility.least_observed(num_rows) == columns.least_observed(num_rows)


@pytest.mark.parametrize("kind", list(PenaltyKind))
def test_weakest_safe_penalty(kind: PenaltyKind) -> None:
    # A kind that is open is the adaptive one where a strength is given.
    given = PenaltyKind.ADAPTIVE if kind is PenaltyKind.AUTO else kind
    weakest = penalty.weakest_safe_strength(penalty.PenaltyKind(given.value))
    assert pytest.approx(weakest) == compatibility.weakest_safe_penalty(kind)


@pytest.mark.parametrize("width", [2, 3, 20])
def test_number_of_parameters(width: int) -> None:
    assert compatibility.num_parameters(width) == quadratic.num_parameters(width)


@pytest.mark.parametrize("threshold", [0.6, 0.61, 0.625, 0.7, 0.75, 0.76, 0.9, 1.0])
@pytest.mark.parametrize("n_subsamples", [2, 4, 6, 8, 10, 100])
def test_half_samples_that_bound_the_false_edges(threshold: float, n_subsamples: int) -> None:
    bounded = stability.has_bound(threshold, n_subsamples // 2)
    assert specs.has_bound(threshold, n_subsamples) is bounded


def test_noise_of_the_papers_recipe() -> None:
    assert specs.PAPER_NOISE_RATIO == paper.NOISE_RATIO


def test_spread_of_the_noise() -> None:
    assert specs.NOISE_SCALES == problem.NOISE_SCALES


def test_transforms() -> None:
    assert [word.value for word in Transform] == ["auto", *TRANSFORMS]


def test_edge_scores() -> None:
    assert [score.value for score in results.EdgeScore] == [s.value for s in metrics.EdgeScore]


def test_estimators_that_graph_recovery_compares() -> None:
    assert {estimator.value for estimator in RecoveryEstimator} == set(ESTIMATORS)


def test_graphs_on_which_coverage_is_measured() -> None:
    assert [graph.value for graph in CoverageGraph] == list(coverage.GRAPHS)
