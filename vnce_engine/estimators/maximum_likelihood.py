"""Monte Carlo maximum likelihood."""

from dataclasses import dataclass
from typing import Literal

from vnce_engine.comparators.natural import NaturalOptions, fit_by_natural_gradient
from vnce_engine.comparators.result import ComparatorFit, ScaledTable
from vnce_engine.comparators.stochastic import (
    FreshChains,
    StochasticOptions,
    fit_by_stochastic_gradient,
)
from vnce_engine.estimators.comparator import ComparatorEstimator
from vnce_engine.runtime.checks import check_choice, check_count, check_number
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import MESSAGES, FitStatus

_MAX_STEPS = 400
# Of the stochastic gradient: the paper's.
_NUM_EPOCHS = 80
_MESSAGES = {
    **MESSAGES,
    FitStatus.CONVERGED: "Monte Carlo adds no more than a share of `tol` to the sampling variance "
    "of the estimates.",
    FitStatus.MAX_ITERATIONS: "The fit stopped at `max_iter` steps before Monte Carlo's share in "
    "the variance of the estimates fell to `tol`.",
}
_STOCHASTIC_MESSAGE = "All epochs were done. Stochastic gradients have no rule by which to stop."


@dataclass(kw_only=True, eq=False, repr=False)
class TruncatedGaussianMLE(ComparatorEstimator):
    """Truncated Gaussian network by maximum likelihood, its gradient from Gibbs samples.

    Missing cells are drawn given the observed ones, rows of the model from the whole of K and h;
    K stays positive definite, which sampling needs. c is not estimated: `log_partition_` is None.

    Parameters
    ----------
    method : "natural" or "stochastic"
        "natural": persistent chains, steps by the Fisher information, no step size, and averaged
        late iterates. "stochastic": plain stochastic gradient steps with new chains every step, as
        Rhodes and Gutmann (2019) compare with; it depends strongly on `step_size`, and a fit with
        its defaults takes minutes.
    linear : "auto", "zero" or "free"
        Whether the linear term h is estimated. "auto": free where a column's mean lies further from
        zero than any model without h has it, about √(2d) standard deviations; else both models are
        fitted to half of the rows, and h is free if its pseudo-likelihood of the others gains
        more than two standard errors by it. `linear_choice_` says which. "zero" is the
        paper's model.
    column_transform : str or sequence of str
        As it is for `TruncatedGaussianVNCE`.
    penalty : float or None
        Strength of the penalty, as it is for 1000 rows and as it is for `TruncatedGaussianVNCE`;
        None is the likelihood itself.
    penalty_kind : "adaptive" or "ridge"
        "adaptive" shrinks strong interactions hardly at all, "ridge" all in proportion.
    max_iter : int or None
        Steps of the natural gradient at most, 400 if None; or epochs of stochastic gradients in
        batches of 100 rows, 80 if None.
    tol : float
        "natural" stops when the Monte Carlo variance is below this fraction of the sampling one.
    step_size : float
        Of the first stochastic gradient step, columns scaled to mean square 1; it falls as
        1 / (1 + epoch/10).
    n_draws, burn_in, thinning : int
        Samples a row of a batch, of its missing cells and of the model, and the Gibbs sweeps before
        the first and between two of them ("stochastic").
    random_state : int, Generator, RandomState or None
        Seed of every draw; the same int, 0 unless given, gives the same result. None draws one.
    min_observed : int or None
        As it is for `TruncatedGaussianVNCE`.
    edge_threshold : float
        |partial correlation| from which a pair is shown as an edge.

    The attributes are those of `TruncatedGaussianVNCE`. `objective_path_` holds, for each step, the
    log likelihood in nats per row that a full natural-gradient step would gain to second order
    ("natural"), or the squared length of the gradient ("stochastic").
    """

    method: Literal["natural", "stochastic"] = "natural"
    penalty_kind: Literal["adaptive", "ridge"] = "adaptive"
    tol: float = 0.5
    step_size: float = 0.1
    n_draws: int = 5
    burn_in: int = 100
    thinning: int = 10

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("method", self.method, ("natural", "stochastic"))
        for name in ("n_draws", "burn_in", "thinning"):
            check_count(name, getattr(self, name))
        check_number("tol", self.tol, "a number between 0 and 1", 0, 1)
        check_number("step_size", self.step_size, "a positive number", 0, float("inf"))

    def _estimate_scaled(self, table: ScaledTable, progress: Progress) -> ComparatorFit:
        if self.method == "natural":
            max_steps = _MAX_STEPS if self.max_iter is None else self.max_iter
            return fit_by_natural_gradient(table, NaturalOptions(max_steps, self.tol), progress)
        num_epochs = _NUM_EPOCHS if self.max_iter is None else self.max_iter
        chains = FreshChains(
            table, num_draws=self.n_draws, burn_in=self.burn_in, thinning=self.thinning
        )
        options = StochasticOptions(self.step_size, num_epochs)
        return fit_by_stochastic_gradient(table, chains, options, progress)

    def _message(self, status: FitStatus) -> str:
        if self.method == "stochastic" and status is FitStatus.MAX_ITERATIONS:
            return _STOCHASTIC_MESSAGE
        return _MESSAGES[status]
