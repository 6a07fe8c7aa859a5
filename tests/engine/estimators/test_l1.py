"""The L1 penalty inside the cycles: exact zeros, where the conditions of the optimum hold."""

import numpy as np
import pytest
import torch

from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.contrastive.variational_em import Cycles
from vnce_engine.data.observations import Observations
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

QUIET = Progress(None)
NUM_COLUMNS = 6


def prepared(fraction: float = 0.0, num_rows: int = 200) -> Problem:
    rng = np.random.default_rng(14)
    X = sample_truncated_gaussian(ring_precision(NUM_COLUMNS, rng), num_rows, rng)
    observations = Observations.from_array(mask_completely_at_random(X, fraction, rng))
    return Problem.prepare(observations, 3, "random", torch.Generator().manual_seed(2))


def fitted(
    problem: Problem, strength: float, *, has_linear: bool = False, tolerance: float = 1e-7
) -> tuple[Cycles, Penalty]:
    penalty = problem.penalty(strength, PenaltyKind.L1, problem.num_rows, has_linear=has_linear)
    cycles = Cycles(problem.start(has_linear=has_linear), QUIET)
    status = cycles.run(
        problem.sample, penalty, problem.constraints(has_linear=has_linear), tolerance, 100
    )
    assert status is FitStatus.CONVERGED
    return cycles, penalty


@pytest.mark.parametrize("has_linear", [False, True])
@pytest.mark.parametrize("strength", [0.002, 0.008])
def test_zeros_are_where_the_slope_is_within_the_penalty_s_and_nowhere_else(
    strength: float, has_linear: bool
) -> None:
    cycles, penalty = fitted(prepared(), strength, has_linear=has_linear)
    assert cycles.point is not None
    precision = cycles.augmented[:-1, :-1]
    # Without the penalty: at the optimum its slope equals the penalty's, or is less at a zero.
    slope = cycles.point.gradient[:-1, :-1] + penalty.gradient(precision)
    threshold = (
        0.5
        * strength
        * 1000
        / penalty.num_rows
        * penalty.inverse_k0.sqrt().outer(penalty.inverse_k0.sqrt())
    )
    is_zero = precision == 0
    off_diagonal = ~torch.eye(NUM_COLUMNS, dtype=torch.bool)
    # The last step was below 1e-7 of a diagonal of order 1, and so is the gradient left.
    at_zero = is_zero & off_diagonal
    assert (cycles.point.gradient[:-1, :-1][at_zero] == 0).all()
    moved = ~is_zero & off_diagonal
    torch.testing.assert_close(
        slope[moved], (threshold * precision.sign())[moved], rtol=0, atol=1e-6
    )
    assert at_zero.any()
    assert moved.any()


def test_a_penalty_above_every_slope_leaves_no_interaction_and_one_below_leaves_some() -> None:
    problem = prepared()
    independent, penalty = fitted(problem, 10.0)
    off_diagonal = ~torch.eye(NUM_COLUMNS, dtype=torch.bool)
    assert (independent.augmented[:-1, :-1][off_diagonal] == 0).all()
    # The least strength that does so is the steepest slope there.
    unpenalised = Penalty(0.0, PenaltyKind.L1, penalty.inverse_k0, problem.num_rows)
    assert independent.point is not None
    surrogate = independent.point.surrogate
    free = type(surrogate)(surrogate.sample, unpenalised, surrogate.constraints)
    slopes = free.at(independent.augmented, QUIET).gradient[:-1, :-1][off_diagonal]
    steepest = 2 * float(slopes.abs().max()) * problem.num_rows / 1000
    for factor, is_empty in ((1.001, True), (0.98, False)):
        cycles, _ = fitted(problem, factor * steepest)
        empty = (cycles.augmented[:-1, :-1][off_diagonal] == 0).all()
        assert bool(empty) == is_empty


@pytest.mark.parametrize("fraction", [0.0, 0.3])
def test_stronger_penalties_leave_fewer_interactions_and_every_matrix_is_symmetric(
    fraction: float,
) -> None:
    problem = prepared(fraction)
    counts = []
    cycles = Cycles(problem.start(has_linear=False), QUIET)
    for strength in (0.2, 0.05, 0.02, 0.005):
        penalty = problem.penalty(strength, PenaltyKind.L1, problem.num_rows, has_linear=False)
        cycles.run(problem.sample, penalty, problem.constraints(has_linear=False), 1e-4, 50)
        assert torch.equal(cycles.augmented, cycles.augmented.mT)
        counts.append(int((cycles.augmented[:-1, :-1] != 0).sum()))
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_a_graph_that_is_given_is_kept_to() -> None:
    problem = prepared(0.3)
    graph = torch.zeros(NUM_COLUMNS, NUM_COLUMNS, dtype=torch.bool)
    graph[0, 1] = graph[1, 0] = graph[2, 5] = graph[5, 2] = True
    cycles = Cycles(problem.start(has_linear=False), QUIET)
    # Without the barrier this table's K leaves the definite matrices, where rows have no posterior.
    penalty = problem.penalty(None, PenaltyKind.L1, problem.num_rows, 1.0, has_linear=False)
    constraints = problem.constraints(graph, is_definite=True, has_linear=False)
    assert cycles.run(problem.sample, penalty, constraints, 1e-6, 100) is FitStatus.CONVERGED
    precision = cycles.augmented[:-1, :-1]
    assert torch.equal(precision != 0, graph | torch.eye(NUM_COLUMNS, dtype=torch.bool))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PenaltyKind)
def test_a_barrier_keeps_the_precision_definite_at_every_step(kind: PenaltyKind) -> None:
    # As many columns as rows and hardly a penalty: without the barrier K is indefinite.
    rng = np.random.default_rng(6)
    X = np.abs(rng.normal(size=(16, 8))) + np.abs(rng.normal(size=(16, 1)))
    problem = Problem.prepare(
        Observations.from_array(X), 10, "sobol", torch.Generator().manual_seed(0)
    )
    smallest = []
    for barrier_rows in (0.0, 1.0):
        penalty = problem.penalty(5e-4, kind, 16, barrier_rows, has_linear=True)
        constraints = problem.constraints(has_linear=True, is_definite=barrier_rows > 0)
        cycles = Cycles(problem.start(has_linear=True), QUIET)
        for _ in range(8):
            cycles.run(problem.sample, penalty, constraints, 1e-3, 1)
            smallest.append(float(torch.linalg.eigvalsh(cycles.augmented[:-1, :-1])[0]))
    assert min(smallest[:8]) < 0
    assert min(smallest[8:]) > 0


def test_columns_many_spreads_from_zero_take_no_more_cycles() -> None:
    # A chain: an interaction cut off without h and c going along shifts the whole model here.
    rng = np.random.default_rng(4)
    X = 30 + np.cumsum(rng.normal(size=(150, 6)), axis=1)
    observations = Observations.from_array(mask_completely_at_random(X, 0.1, rng))
    problem = Problem.prepare(observations, 10, "sobol", torch.Generator().manual_seed(0))
    cycles, _ = fitted(problem, 0.02, has_linear=True, tolerance=1e-3)
    num_edges = int((cycles.augmented[:-1, :-1] != 0).sum() - NUM_COLUMNS) // 2
    assert 0 < num_edges < 15
    assert len(cycles.objective_path) < 30
