"""The cycle as a whole: how it ends, how it goes back, and what it costs in memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.blocks import BLOCK_WIDTH
from vnce_engine.cycles import Cycles, scaled_change
from vnce_engine.fit import FitOptions
from vnce_engine.mean_field import complete
from vnce_engine.newton import newton_step
from vnce_engine.observations import Observations
from vnce_engine.penalty import Penalty, PenaltyKind
from vnce_engine.problem import NUM_DRAWS, Problem
from vnce_engine.progress import Progress
from vnce_engine.result import FitStatus
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)
from vnce_engine.surface import Surface

NUM_COLUMNS = 5


def prepared(num_rows: int) -> Problem:
    rng = np.random.default_rng(12)
    X = sample_truncated_gaussian(ring_precision(NUM_COLUMNS, rng), num_rows, rng)
    observations = Observations.from_array(mask_completely_at_random(X, 0.3, rng))
    return Problem.prepare(observations, 1, 10, "sobol", torch.Generator().manual_seed(2))


def ridge(problem: Problem) -> Penalty:
    return problem.penalty(0.5, PenaltyKind.RIDGE, "zero", problem.num_rows)


def test_a_start_without_a_finite_objective_ends_the_fit_where_it_was() -> None:
    problem = prepared(100)
    start = problem.start("zero")
    start[-1, -1] = torch.inf
    cycles = Cycles(start, Progress(None))
    status = cycles.run(problem.sample(), ridge(problem), problem.region("zero"), 1e-3, 20)
    assert status is FitStatus.NON_FINITE
    assert not cycles.objective_path
    assert torch.equal(cycles.augmented, start)


def test_slightly_old_noise_draws_move_the_end_by_less_than_the_default_tolerance() -> None:
    problem = prepared(200)
    cycles = Cycles(problem.start("zero"), Progress(None))
    arguments = (problem.sample(), ridge(problem), problem.region("zero"))
    assert cycles.run(*arguments, 1e-6, 100) is FitStatus.CONVERGED
    end = cycles.augmented
    # A new run draws the noise rows' missing cells anew at the end of the last.
    assert cycles.run(*arguments, 1e-6, 100) is FitStatus.CONVERGED
    assert 0 < scaled_change(cycles.augmented - end, end) < FitOptions().tolerance


def test_a_step_that_q_cannot_follow_is_taken_back_and_the_fit_still_settles() -> None:
    # Columns that grow out of one another by factors: steps of the first cycles are far too long.
    rng = np.random.default_rng(23)
    X = np.exp(rng.standard_normal((200, 1)) + 0.3 * rng.standard_normal((200, 6)))
    X = mask_completely_at_random(X, 0.2, rng)
    # K is indefinite, and whether 100 cycles settle it is a matter of rounding.
    model = TruncatedGaussianVNCE(linear="free", penalty=1.0, max_iter=400, random_state=0).fit(X)
    path = np.array(model.objective_path_)
    assert model.status_ is FitStatus.CONVERGED
    # Without retreats it falls by more than half a nat a row on the way.
    assert path.min() > path[0] - 0.1


class LargestTensor(TorchDispatchMode):
    """Remembers the number of elements of the largest new tensor that an operation made."""

    def __init__(self) -> None:
        super().__init__()
        self.num_elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        known = {t.untyped_storage().data_ptr() for t in args if isinstance(t, torch.Tensor)}
        if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in known:
            self.num_elements = max(self.num_elements, result.numel())
        return result


@pytest.mark.parametrize("part", ["e-step", "m-step"])
def test_temporaries_are_bounded_by_the_block_however_many_rows_there_are(part: str) -> None:
    problem = prepared(2000)
    sample, start = problem.sample(), problem.start("zero")
    surface = Surface(sample, torch.zeros_like(start), ridge(problem), problem.region("zero"))

    def e_step() -> None:
        for block in sample.blocks:
            complete(block, start, np.log(sample.nu), 1)

    def m_step() -> None:
        newton_step(surface.at(start, Progress(None)), Progress(None))

    e_step()
    steps: dict[str, Callable[[], None]] = {"e-step": e_step, "m-step": m_step}
    with LargestTensor() as largest:
        steps[part]()
    assert sum(block.num_rows for block in sample.noise) > 5 * BLOCK_WIDTH
    assert 0 < largest.num_elements <= BLOCK_WIDTH * (NUM_COLUMNS + 1)
    assert NUM_DRAWS * sample.data[0].num_rows <= BLOCK_WIDTH


def test_a_default_fit_ends_nearer_its_optimum_than_new_noise_moves_that() -> None:
    rng = np.random.default_rng(31)
    X = sample_truncated_gaussian(ring_precision(10, rng), 500, rng)
    X = mask_completely_at_random(X, 0.3, rng)

    def estimate(tol: float, seed: int) -> Any:
        model = TruncatedGaussianVNCE(linear="zero", penalty=0.3, tol=tol, random_state=seed)
        return model.fit(X).partial_correlation_

    def distance(one: Any, other: Any) -> float:
        return float(np.sqrt(np.mean((one - other) ** 2)))

    optimum = estimate(1e-5, 0)
    noise = np.median([distance(optimum, estimate(1e-5, seed)) for seed in (1, 2, 3)])
    assert 0 < distance(optimum, estimate(FitOptions().tolerance, 0)) < 0.5 * noise


def test_a_newton_step_promises_twice_what_it_gains() -> None:
    # With at most four noise rows a data row, and no missing cells, its curvature is the exact one;
    # and s'Hs = s'g for every iterate s of conjugate gradients. The rest is of third order.
    rng = np.random.default_rng(13)
    X = sample_truncated_gaussian(ring_precision(NUM_COLUMNS, rng), 400, rng)
    problem = Problem.prepare(
        Observations.from_array(X), 1, 4, "sobol", torch.Generator().manual_seed(2)
    )
    cycles = Cycles(problem.start("zero"), Progress(None))
    cycles.run(problem.sample(), ridge(problem), problem.region("zero"), 1e-8, 100)
    assert cycles.point is not None
    top, surface = cycles.augmented, cycles.point.surface
    excess = {}
    for size in (1e-2, 5e-3):
        start = surface.at(top * (1 + size), Progress(None))
        step = newton_step(start, Progress(None))
        gain = float(step.point.value - start.value)
        excess[size] = abs(step.promised / (2 * gain) - 1)
    assert excess[1e-2] < 0.1
    # What is left is one order smaller than the step.
    assert excess[5e-3] < 0.75 * excess[1e-2]
