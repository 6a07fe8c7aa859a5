"""The extended BIC: its formula, its price of an edge, and why n J stands for a log likelihood."""

import math

import numpy as np
import pytest
import torch

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.contrastive.variational_em import Cycles
from vnce_engine.data.observations import Observations
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.ebic import extended_bic
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


def test_an_edge_costs_log_n_and_four_gamma_log_d() -> None:
    without = extended_bic(-3.0, 4, 100, 7, 0.5)
    assert without == pytest.approx(600 + 4 * (math.log(100) + 2 * math.log(7)))
    assert extended_bic(-3.0, 5, 100, 7, 0.0) - extended_bic(-3.0, 4, 100, 7, 0.0) == pytest.approx(
        math.log(100)
    )


@pytest.fixture(scope="module")
def fitted() -> TruncatedGaussianVNCE:
    rng = np.random.default_rng(41)
    X = sample_truncated_gaussian(ring_precision(6, rng), 800, rng)
    X = mask_completely_at_random(X, 0.1, rng)
    return TruncatedGaussianVNCE(
        linear="zero", penalty_kind="l1", selection="ebic", ebic_gamma=0.0, random_state=0
    ).fit(X)


@pytest.mark.slow
def test_the_graph_of_least_criterion_is_chosen_and_the_precision_has_its_edges(
    fitted: TruncatedGaussianVNCE,
) -> None:
    path = fitted.penalty_path_
    (chosen,) = [step for step in path if step.chosen]
    assert chosen.criterion == min(step.criterion for step in path)
    edges = [edge for edge in fitted.edges_ if edge.precision != 0]
    assert len(edges) == chosen.num_edges
    assert 0 < len(edges) < 15
    assert (fitted.precision_ == fitted.precision_.T).all()
    assert not any(edge.selected for edge in fitted.edges_ if edge.precision == 0)


def test_the_path_shows_every_strength_that_was_tried_with_its_edges(
    fitted: TruncatedGaussianVNCE,
) -> None:
    path = fitted.penalty_path_
    strengths = [step.strength for step in path]
    assert strengths == sorted(strengths, reverse=True)
    assert len(path) > 5
    assert path[0].num_edges < path[-1].num_edges
    assert all(step.standard_error is None for step in path)


@pytest.mark.slow
def test_the_graph_is_fitted_without_the_penalty(fitted: TruncatedGaussianVNCE) -> None:
    # The gradient in the chosen edges' entries vanishes without any penalty at all.
    assert fitted.converged_
    assert fitted.diagnostics_.gradient_norm < 1e-2
    assert (fitted.penalty_, fitted.penalty_kind_, fitted.selection_) == (None, None, "ebic")


@pytest.mark.slow
def test_of_strengths_with_the_same_graph_the_strongest_is_chosen() -> None:
    # One strong pair of three columns: most strengths leave its edge alone, and their criteria are
    # the same but for the last digits.
    rng = np.random.default_rng(1)
    X = np.abs(rng.normal(size=(300, 3)))
    X[:, 1] = np.abs(X[:, 0] + 0.5 * rng.normal(size=300))
    model = TruncatedGaussianVNCE(
        linear="zero", penalty_kind="l1", selection="ebic", random_state=0
    ).fit(X)
    path = model.penalty_path_
    assert [step.num_edges for step in path[:6]] == [0, 1, 1, 1, 1, 1]
    assert [step.chosen for step in path[:3]] == [False, True, False]


def test_too_few_rows_for_a_graph_without_edges_are_refused() -> None:
    X = np.abs(np.random.default_rng(1).normal(size=(9, 4)))
    with pytest.raises(ValueError, match=r"more rows than the 9 parameters .* got 9"):
        TruncatedGaussianVNCE(penalty_kind="l1", selection="ebic", random_state=0).fit(X)


def test_a_grid_without_a_graph_small_enough_is_refused() -> None:
    # 2 d + 1 = 17 parameters without edges; columns that share a factor give more than three.
    rng = np.random.default_rng(1)
    X = np.abs(rng.normal(size=(20, 1)) + 0.2 * rng.normal(size=(20, 8)))
    with pytest.raises(ValueError, match=r"fewer parameters than the 20 rows, got 0\.003 at most"):
        TruncatedGaussianVNCE(
            linear="zero", penalty_kind="l1", selection="ebic", penalties=[0.003], random_state=0
        ).fit(X)


@pytest.mark.release
def test_twice_the_gain_of_a_needless_edge_is_chi_squared() -> None:
    """At any nu, n J is a log likelihood for all but c: 2 n (J_1 - J_0) has mean 1, variance 2.

    With independent columns, independent noise and complete rows. The mean over 150 tables has the
    standard error sqrt(2 / 150) = .115; a factor other than 1 before n J would show from .7 or 1.4.
    """
    num_tables, num_rows = 150, 200
    graphs = torch.zeros(2, 2, 2, dtype=torch.bool)
    graphs[1, 0, 1] = graphs[1, 1, 0] = True
    gains = []
    for seed in range(num_tables):
        X = np.abs(np.random.default_rng(seed).normal(size=(num_rows, 2)))
        generator = torch.Generator().manual_seed(seed)
        problem = Problem.prepare(Observations.from_array(X), 2, "random", generator)
        penalty = problem.penalty(None, PenaltyKind.L1, num_rows, has_linear=False)
        objectives = []
        for graph in graphs:
            cycles = Cycles(problem.start(has_linear=False), Progress(None))
            cycles.run(
                problem.sample, penalty, problem.constraints(graph, has_linear=False), 1e-5, 50
            )
            objectives.append(cycles.objective_path[-1])
        gains.append(2 * num_rows * (objectives[1] - objectives[0]))
    assert min(gains) > -1e-6
    assert abs(float(np.mean(gains)) - 1) < 4 * math.sqrt(2 / num_tables)
