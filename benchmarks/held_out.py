"""Whether held-out rows prefer the strengths, and the relaxing, that fresh rows do.

    python -m benchmarks.held_out [--graph "star d=10"] [--rows 1000] [--missing 0] [--tables 5]

For each strength of the adaptive penalty, means over tables: the objective of held-out rows and
that on complete fresh rows, in thousandths of a nat a row below the best; error of K (columns
scaled to K_ii = 1), edges over truth and AUC of |K|. Then the same for the fit relaxed from there.
"""

import argparse

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor

from benchmarks.validity.penalised import root_mean_square_error
from benchmarks.validity.simulated import DEFAULT_GRAPHS, Truth, pairs
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.contrastive.truncated_sample import (
    ContrastiveSample,
    data_blocks,
    noise_blocks,
    noise_points,
)
from vnce_engine.data.canonical import canonical_order
from vnce_engine.data.observations import Observations
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.pipeline.fit import BARRIER_ROWS, FitOptions
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.cross_validation import cross_validated, gain_of_relaxing
from vnce_engine.selection.setting import Setting

STRENGTHS = (3.0, 1.7, 1.0, 0.55, 0.3, 0.17, 0.1, 0.055, 0.03, 0.01)
_FRESH_ROWS = 30_000
# As a path of `selection/held_out.py` is followed.
_TOLERANCE, _MAX_CYCLES = 2e-2, 6


def main() -> None:
    """Print a line for each strength."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.held_out")
    parser.add_argument("--graph", default="star d=10", choices=tuple(DEFAULT_GRAPHS))
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--tables", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    tables = [_figures(asked.graph, asked.rows, asked.missing, s) for s in range(asked.tables)]
    mean = np.mean(tables, axis=0)
    mean[:, 0] -= mean[:, 0].max()
    mean[:, 2:4] -= mean[:, 2].max()
    mean[:, :4] *= 1_000
    print(
        "strength | held out, gain of relaxing | fresh, relaxed | plain: error edges AUC | relaxed"
    )
    for strength, line in zip(STRENGTHS, mean, strict=True):
        print(f"{strength:8g}", *(f"{x:8.1f}" for x in line[:4]), *(f"{x:7.3f}" for x in line[4:]))


def _figures(graph: str, num_rows: int, missing: float, seed: int) -> NDArray[np.float64]:
    """Return (strengths, 10) of one table."""
    truth = DEFAULT_GRAPHS[graph](np.random.default_rng((2, seed)))
    table = truth.sample(num_rows, missing, np.random.default_rng(seed))
    observations = Observations.from_array(table)
    rows, columns = canonical_order(observations)
    noise_ratio = FitOptions().noise_rows_each(num_rows)
    generator = torch.Generator().manual_seed(seed)
    problem = Problem.prepare(
        observations.reordered(rows, columns), noise_ratio, "sobol", generator
    )
    fresh = _fresh_sample(problem, truth, columns, seed)
    setting = Setting(problem, PenaltyKind.ADAPTIVE, False, BARRIER_ROWS)
    progress = Progress(None)
    fit = setting.cycles(setting.start(), progress)

    def follow(penalty: Penalty) -> Tensor:
        fit.run(problem.sample, penalty, setting.constraints(), _TOLERANCE, _MAX_CYCLES)
        return fit.augmented

    def judged(augmented: Tensor) -> list[float]:
        found = problem.model(augmented).precision[torch.argsort(columns)]
        return _judged(found[:, torch.argsort(columns)].numpy(), truth)

    lines = []
    for strength in STRENGTHS:
        penalty = setting.penalty(strength, problem.num_rows)
        plain = follow(penalty)
        held_out = cross_validated(setting, fit, penalty, progress).mean()
        relaxed = follow(penalty.relaxed(plain[:-1, :-1]))
        gain = gain_of_relaxing(setting, plain, relaxed, penalty, progress).mean()
        of_fresh = [float(fresh.objective_by_row(a, _FRESH_ROWS).mean()) for a in (plain, relaxed)]
        lines.append([float(held_out), float(gain), *of_fresh, *judged(plain), *judged(relaxed)])
        follow(penalty)
    return np.array(lines)


def _fresh_sample(problem: Problem, truth: Truth, columns: Tensor, seed: int) -> ContrastiveSample:
    """Return complete rows of the truth in the problem's units, with noise of their own."""
    rows = truth.sample(_FRESH_ROWS, 0.0, np.random.default_rng(1_000_000 + seed))
    values = torch.from_numpy(rows)[:, columns] / problem.scale
    observations = Observations(values, torch.ones_like(values, dtype=torch.bool))
    generator = torch.Generator().manual_seed(1)
    points = noise_points(problem.num_columns, "sobol", generator, values.device)
    every = torch.arange(_FRESH_ROWS)
    return ContrastiveSample.of(
        data_blocks(observations, every, problem.noise, 1, generator),
        noise_blocks(observations, every, round(problem.sample.nu), problem.noise, points),
    )


def _judged(precision: NDArray[np.float64], truth: Truth) -> list[float]:
    true, found = pairs(truth.precision), pairs(precision)
    share = (found * np.sign(true))[truth.is_edge].sum() / np.abs(true).sum()
    auc = np.nan if truth.is_edge.all() else roc_auc_score(truth.is_edge, np.abs(found))
    return [root_mean_square_error(precision, truth), float(share), float(auc)]


if __name__ == "__main__":
    main()
