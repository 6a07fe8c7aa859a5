"""The cycle as a whole: how it ends, how it goes back, and what it costs in memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid
from torch.utils._python_dispatch import TorchDispatchMode

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.contrastive import variational_em as cycles_module
from vnce_engine.contrastive.posterior import complete
from vnce_engine.contrastive.row_blocks import BLOCK_WIDTH, Block
from vnce_engine.contrastive.truncated_problem import NUM_DRAWS, Problem
from vnce_engine.contrastive.variational_em import Cycles
from vnce_engine.data.observations import Observations
from vnce_engine.optim.newton import NewtonStep, newton_step
from vnce_engine.optim.step_length import scaled_change
from vnce_engine.optim.surrogate import Surrogate, SurrogatePoint
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.pipeline.fit import FitOptions
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus, FitStep
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)

NUM_COLUMNS = 5


def prepared(num_rows: int) -> Problem:
    rng = np.random.default_rng(12)
    X = sample_truncated_gaussian(ring_precision(NUM_COLUMNS, rng), num_rows, rng)
    observations = Observations.from_array(mask_completely_at_random(X, 0.3, rng))
    return Problem.prepare(observations, 10, "sobol", torch.Generator().manual_seed(2))


def ridge(problem: Problem) -> Penalty:
    return problem.penalty(0.5, PenaltyKind.RIDGE, problem.num_rows, has_linear=False)


def test_a_start_without_a_finite_objective_ends_the_fit_where_it_was() -> None:
    problem = prepared(100)
    start = problem.start(has_linear=False)
    start[-1, -1] = torch.inf
    cycles = Cycles(start, Progress(None))
    status = cycles.run(
        problem.sample, ridge(problem), problem.constraints(has_linear=False), 1e-3, 20
    )
    assert status is FitStatus.NON_FINITE
    assert not cycles.objective_path
    assert torch.equal(cycles.augmented, start)


def test_slightly_old_noise_draws_move_the_end_by_less_than_the_default_tolerance() -> None:
    problem = prepared(200)
    cycles = Cycles(problem.start(has_linear=False), Progress(None))
    arguments = (problem.sample, ridge(problem), problem.constraints(has_linear=False))
    assert cycles.run(*arguments, 1e-6, 100) is FitStatus.CONVERGED
    end = cycles.augmented
    # A new run draws the noise rows' missing cells anew at the end of the last.
    assert cycles.run(*arguments, 1e-6, 100) is FitStatus.CONVERGED
    assert 0 < scaled_change(cycles.augmented - end, end) < FitOptions().tolerance


def log_marginals(block: Block, augmented: torch.Tensor) -> torch.Tensor:
    """Return log phi of the rows' observed cells, at most one cell of a row being missing."""
    rows = block.draws[:, 0].clone()
    columns = block.missing[0].long().repeat(block.num_rows // block.num_owners)
    lacking = (columns < len(rows) - 1).nonzero().flatten()
    columns = columns[lacking]
    rows[columns, lacking] = 0.0
    values = -0.5 * ((augmented @ rows) * rows).sum(dim=0)
    precision = augmented.diagonal()[columns]
    pull = -(augmented @ rows)[columns, lacking]
    # ∫ exp(-½ k z² + b z) dz over z >= 0.
    integral = 0.5 * pull.square() / precision + 0.5 * torch.log(2 * torch.pi / precision)
    integral = integral + torch.special.log_ndtr(pull / precision.sqrt())
    return values.index_add(0, lacking, integral)


def test_where_q_is_the_posterior_the_path_has_the_nce_objective_whatever_the_draws() -> None:
    rng = np.random.default_rng(5)
    X = np.abs(rng.standard_t(3, size=(300, 2)))
    is_missing = rng.random(300) < 0.6
    X[np.flatnonzero(is_missing), rng.integers(2, size=int(is_missing.sum()))] = np.nan
    observations = Observations.from_array(X)
    problem = Problem.prepare(observations, 10, "sobol", torch.Generator().manual_seed(2))
    sample = problem.sample
    cycles = Cycles(problem.start(has_linear=False), Progress(None))
    penalty = problem.penalty(None, PenaltyKind.RIDGE, problem.num_rows, has_linear=False)
    # Draws of noise rows may be as old as their run, which costs something at second order. Each
    # run begins with new ones where the last has ended.
    for _ in range(3):
        status = cycles.run(sample, penalty, problem.constraints(has_linear=False), 1e-6, 100)
        assert status is FitStatus.CONVERGED

    total = 0.0
    for block in sample.blocks:
        log_ratio = log_marginals(block, cycles.augmented) - block.log_noise - np.log(sample.nu)
        total += float(logsigmoid(-log_ratio if block.is_noise else log_ratio).sum())
    # The last draws are of the start of the last cycle, which moved A by less than 1e-6.
    assert cycles.objective_path[-1] == pytest.approx(total / 300, abs=1e-6)


def objective_once_draws_have_followed(augmented: torch.Tensor) -> float:
    """Return the objective of the table of 200 rows, draws from the posterior of these parameters.

    NaN where K is indefinite.
    """
    problem = prepared(200)
    sample = problem.sample
    for block in sample.blocks:
        complete(block, augmented)
    surrogate = Surrogate(sample, ridge(problem), problem.constraints(has_linear=False))
    return float(surrogate.at(augmented, Progress(None)).value)


def test_a_step_that_draws_cannot_follow_is_taken_back_and_the_fit_still_settles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = prepared(200)
    arguments = (problem.sample, ridge(problem), problem.constraints(has_linear=False), 1e-5, 100)
    plain = Cycles(problem.start(has_linear=False), Progress(None))
    assert plain.run(*arguments) is FitStatus.CONVERGED

    # A way on which all pairs come to attract each other: so far, that the objective is a nat worse
    # or, K indefinite, none.
    way = torch.nn.functional.pad(torch.eye(NUM_COLUMNS, dtype=torch.float64) - 1, (0, 1, 0, 1))
    best = objective_once_draws_have_followed(plain.augmented)
    length = next(
        step
        for step in 2.0 ** np.arange(-4, 10)
        if not objective_once_draws_have_followed(plain.augmented + step * way) >= best - 1
    )
    num_steps, retreats = 0, []

    def leap(point: SurrogatePoint, progress: Progress, *forcing: float) -> NewtonStep:
        nonlocal num_steps
        num_steps += 1
        step = newton_step(point, progress, *forcing)
        if num_steps != 3:
            return step
        return step._replace(
            point=point.surrogate.at(step.point.augmented + length * way, progress)
        )

    retreat = Cycles._retreat

    def watched(self: Cycles, accepted: torch.Tensor) -> None:
        before = float(torch.linalg.norm(self._next - accepted))
        retreat(self, accepted)
        retreats.append(float(torch.linalg.norm(self._next - accepted)) / before)

    monkeypatch.setattr(cycles_module, "newton_step", leap)
    monkeypatch.setattr(Cycles, "_retreat", watched)
    problem = prepared(200)
    cycles = Cycles(problem.start(has_linear=False), Progress(None))
    assert cycles.run(problem.sample, *arguments[1:]) is FitStatus.CONVERGED
    assert retreats == pytest.approx([0.5] * len(retreats))
    assert retreats
    # All that the step had lost, a nat or more, is won back but for a hundredth of it at most.
    assert objective_once_draws_have_followed(cycles.augmented) > best - 0.01


def test_noise_is_drawn_anew_after_a_retreat_however_short() -> None:
    # Noise draws are kept while A moves little; but those for an indefinite K have no weights.
    problem = prepared(200)
    sample, accepted = problem.sample, problem.start(has_linear=False)
    beyond = accepted.clone()
    for point, share in ((accepted, -0.99), (beyond, -1.005)):
        point[0, 1] = point[1, 0] = share * (point[0, 0] * point[1, 1]).sqrt()
    cycles, constraints = Cycles(beyond, Progress(None)), problem.constraints(has_linear=False)
    cycles._e_step(sample, beyond, constraints, cycles_module._STALE)
    assert any(block.log_ratio_offset.isnan().any() for block in sample.noise)

    cycles._retreat(accepted)

    assert scaled_change(cycles.augmented - beyond, beyond) < cycles_module._STALE
    cycles._e_step(sample, cycles.augmented, constraints, cycles_module._STALE)
    assert all(torch.isfinite(block.log_ratio_offset).all() for block in sample.blocks)


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
    sample, start = problem.sample, problem.start(has_linear=False)
    surrogate = Surrogate(sample, ridge(problem), problem.constraints(has_linear=False))

    # Columns that all repel each other, whose tilt takes most.
    repelling = start.clone()
    repelling[:-1, :-1] = start.diagonal()[:-1].diag() * 0.2 + 0.8

    def e_step() -> None:
        for block in sample.blocks:
            complete(block, repelling)

    def m_step() -> None:
        newton_step(surrogate.at(start, Progress(None)), Progress(None))

    e_step()
    steps: dict[str, Callable[[], None]] = {"e-step": e_step, "m-step": m_step}
    with LargestTensor() as largest:
        steps[part]()
    assert sum(block.num_rows for block in sample.noise) > 5 * BLOCK_WIDTH
    assert 0 < largest.num_elements <= BLOCK_WIDTH * (NUM_COLUMNS + 1)
    assert NUM_DRAWS * sample.data[0].num_rows <= BLOCK_WIDTH


@pytest.mark.slow
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
        Observations.from_array(X), 4, "sobol", torch.Generator().manual_seed(2)
    )
    cycles = Cycles(problem.start(has_linear=False), Progress(None))
    cycles.run(problem.sample, ridge(problem), problem.constraints(has_linear=False), 1e-8, 100)
    assert cycles.point is not None
    top, surrogate = cycles.augmented, cycles.point.surrogate
    excess = {}
    for size in (1e-2, 5e-3):
        start = surrogate.at(top * (1 + size), Progress(None))
        step = newton_step(start, Progress(None))
        gain = float(step.point.value - start.value)
        excess[size] = abs(step.predicted_increase / (2 * gain) - 1)
    assert excess[1e-2] < 0.1
    # What is left is one order smaller than the step.
    assert excess[5e-3] < 0.75 * excess[1e-2]


def test_a_resumed_fit_measures_its_first_step_from_the_completed_rows() -> None:
    # Cells that are still to be drawn stand at 0, far below the columns' means.
    rng = np.random.default_rng(4)
    X = mask_completely_at_random(rng.normal(20.0, 1.0, size=(400, 4)), 0.4, rng)
    stored: list[bytes] = []
    options: dict[str, Any] = {"linear": "free", "penalty": None}

    def store(step: FitStep) -> None:
        assert step.checkpoint is not None
        if step.stage == "fit":
            stored.append(step.checkpoint.dump())

    TruncatedGaussianVNCE(**options).fit(X, on_step=store)
    centres: list[torch.Tensor] = []
    measure = cycles_module._change

    def noted(step: torch.Tensor, augmented: torch.Tensor, centre: torch.Tensor) -> float:
        centres.append(centre)
        return measure(step, augmented, centre)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycles_module, "_change", noted)
        TruncatedGaussianVNCE(**options).fit(X, checkpoint=Checkpoint.load(stored[-2]))
    assert torch.allclose(centres[0], centres[-1], rtol=0, atol=1e-2)
