"""Contrastive divergence, plain and persistent."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vnce_engine.comparators.result import ComparatorFit, ScaledTable
from vnce_engine.comparators.stochastic import (
    ChainsFromData,
    PersistentChains,
    StochasticOptions,
    fit_by_stochastic_gradient,
)
from vnce_engine.estimators.comparator import ComparatorEstimator
from vnce_engine.runtime.checks import check_count, check_number, shown
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import MESSAGES, FitStatus

NUM_EPOCHS = 80
_MESSAGES = {
    **MESSAGES,
    FitStatus.MAX_ITERATIONS: "All epochs were done. Stochastic gradients have no rule by which to "
    "stop.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class TruncatedGaussianCD(ComparatorEstimator):
    """Truncated Gaussian network by contrastive divergence (Hinton, 2002; Tieleman, 2008).

    Stochastic steps along the moments of a batch less those of the model's Gibbs chains, which are
    not run to equilibrium. Missing cells are redrawn inside the chain of their row. c is not
    estimated: `log_partition_` is None.

    Parameters
    ----------
    persistent : bool
        Whether the model's chains run on from batch to batch, or start at the rows of each (CD-k).
    num_sweeps : int
        Gibbs sweeps a step, k.
    step_size : float
        Of the first gradient step, columns scaled to mean square 1; it falls as 1 / (1 + epoch/10).
    max_iter : int or None
        Epochs, 80 if None, in batches of 100 rows.

    All other parameters are those of `TruncatedGaussianMLE`. The attributes are those of
    `TruncatedGaussianVNCE`; `objective_path_` has the squared length of each step's gradient.
    """

    persistent: bool = True
    num_sweeps: int = 1
    step_size: float = 0.1
    penalty_kind: Literal["adaptive", "ridge"] = "adaptive"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.persistent, bool | np.bool_):
            raise ValueError(f"`persistent` must be True or False, got {shown(self.persistent)}")
        check_count("num_sweeps", self.num_sweeps)
        check_number("step_size", self.step_size, "a positive number", 0, math.inf)

    def _estimate_scaled(self, table: ScaledTable, progress: Progress) -> ComparatorFit:
        chains = PersistentChains if self.persistent else ChainsFromData
        num_epochs = NUM_EPOCHS if self.max_iter is None else self.max_iter
        options = StochasticOptions(self.step_size, num_epochs)
        return fit_by_stochastic_gradient(table, chains(table, self.num_sweeps), options, progress)

    def _message(self, status: FitStatus) -> str:
        return _MESSAGES[status]
