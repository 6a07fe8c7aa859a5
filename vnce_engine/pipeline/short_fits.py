"""Fits of the truncated Gaussian that are cut short, by which transforms are judged."""

import numpy as np
import torch
from numpy.typing import NDArray

from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.far_columns import lowered
from vnce_engine.data.observations import Observations
from vnce_engine.inference.log_density import log_densities
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.pipeline.fit import BARRIER_ROWS
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.setting import Setting

FloatArray = NDArray[np.float64]

# Such fits need not be good, but equally good.
_NOISE_RATIO = 5
_STRENGTH = 0.3
_TOLERANCE = 3e-2
_MAX_CYCLES = 8


def log_densities_of_others(Y: FloatArray, others: FloatArray, progress: Progress) -> FloatArray:
    """Return the log density (m,) of other rows (m, d) by a short fit to Y (n, d), NaN missing."""
    observations, shift = lowered(Observations.from_array(Y))
    generator = torch.Generator().manual_seed(0)
    problem = Problem.prepare(observations, _NOISE_RATIO, "sobol", generator)
    setting = Setting(problem, PenaltyKind.ADAPTIVE, True, BARRIER_ROWS)
    fit = setting.cycles(setting.start(), progress)
    penalty, constraints = setting.penalty(_STRENGTH, problem.num_rows), setting.constraints()
    fit.run(problem.sample, penalty, constraints, _TOLERANCE, _MAX_CYCLES)
    model = problem.model(fit.augmented)
    if shift is not None:
        model = model.with_columns_moved(shift)
    return log_densities(model, Observations.from_array(others), generator)[0].numpy()
