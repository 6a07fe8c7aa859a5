"""Fitting: VNCE jointly, by variational EM or by exact EM; NCE and VI where sums are known.

All take fixed rows and uniforms, so that each step maximises a smooth function by BFGS; they take
and return NumPy arrays. The noise rows' draws come from the q of the cycle's start: with exact
expectations the noise term does not depend on q, and with finitely many draws q would learn to make
the estimate of phi(y) come out low.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from vnce_engine.black_box.contrast import (
    Contrast,
    Draws,
    Rows,
    draw_latents,
    log_ratio,
    vnce_terms,
)
from vnce_engine.black_box.objectives import elbo, log_weight
from vnce_engine.black_box.protocols import UnnormalisedModel, VariationalFamily
from vnce_engine.contrastive.objective import data_term, vnce_objective
from vnce_engine.optim.bfgs import minimise
from vnce_engine.runtime.checks import as_array, check_count, check_range, shown
from vnce_engine.runtime.progress import OnStep
from vnce_engine.runtime.reports import FitStatus, FitStep

# BFGS iterations of each step of variational EM, as in the paper's appendix.
PARTIAL_ITERATIONS = 5
# BFGS iterations of a step that is to reach its maximum.
_FULL_ITERATIONS = 200

_MESSAGES = {
    FitStatus.CONVERGED: "A cycle no longer moved the objective by `tolerance`.",
    FitStatus.MAX_ITERATIONS: "The fit stopped at the number of cycles or epochs it was given. See "
    "by the objective's path whether it has converged; try more of them, or another start.",
    FitStatus.NON_FINITE: "The objective became infinite or undefined; the last finite estimate is "
    "returned. Try another start, and see that q and the noise reach wherever the model does.",
    FitStatus.CANCELLED: "The fit was cancelled; the last estimate is returned.",
}

_STUCK = (
    "The climb ended where single parameters would still raise the objective: their sizes differ "
    "by too much for it. Measure columns in units in which they are about 1, or try another start."
)
# Of the tolerance: the gain that a single parameter may leave.
_MOST_LEFT = 100

# Takes theta and alpha, and returns them after one cycle.
_Cycle = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
# Takes theta and alpha, and returns the objective.
_Value = Callable[[Tensor, Tensor], Tensor]


class _Climbs:
    """The climbs of a fit; it remembers those of the present cycle."""

    def __init__(self) -> None:
        self._ends: list[tuple[Callable[[Tensor], Tensor], Tensor]] = []

    def begin_cycle(self) -> None:
        """Forget earlier climbs."""
        self._ends.clear()

    def lower(self, loss: Callable[[Tensor], Tensor], start: Tensor, max_iterations: int) -> Tensor:
        """Return where BFGS leads from `start`."""
        end = minimise(loss, start, max_iterations=max_iterations).parameters
        self._ends.append((loss, end))
        return end

    def raise_both(self, value: _Value, theta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Return where BFGS leads in theta and alpha together, up an objective of both."""
        sizes = [len(theta), len(alpha)]
        both = self.lower(
            lambda both: -value(*both.split(sizes)), torch.cat([theta, alpha]), _FULL_ITERATIONS
        )
        found_theta, found_alpha = both.split(sizes)
        return found_theta, found_alpha

    def are_stuck(self, gain: float) -> bool:
        """Return whether, where a climb ended, a single parameter would still gain as much.

        BFGS stops early where parameters are of very different sizes: no step along the gradient
        is short enough for the steepest and long enough for the others to matter.
        """
        return any(_leaves(gain, loss, end) for loss, end in self._ends)


def _leaves(gain: float, loss: Callable[[Tensor], Tensor], end: Tensor) -> bool:
    """Return whether the step in one parameter that promises twice the `gain` gives it."""
    point = end.clone().requires_grad_()
    value = loss(point)
    (slope,) = torch.autograd.grad(value, point)
    with torch.no_grad():
        for i in slope.nonzero().flatten().tolist():
            moved = end.clone()
            moved[i] -= 2 * gain / slope[i]
            if value - loss(moved) >= gain:
                return True
    return False


@dataclass(frozen=True)
class VariationalFit:
    """Where a fit ended."""

    theta: NDArray[np.float64]
    """(p,)"""
    alpha: NDArray[np.float64]
    """(a,); empty where there is no q."""
    status: FitStatus
    message: str
    objective_path: tuple[float, ...]
    """The objective at the start and after each cycle, nats a data row."""

    @property
    def num_cycles(self) -> int:
        """Cycles done."""
        return len(self.objective_path) - 1


def fit_jointly(
    model: UnnormalisedModel,
    family: VariationalFamily,
    contrast: Contrast,
    theta: ArrayLike,
    alpha: ArrayLike,
    *,
    tolerance: float = 1e-8,
    max_cycles: int = 100,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise J_VNCE in theta and alpha together, from the given starts.

    A cycle is a whole climb, for fixed draws at the noise. `on_step` is called after every cycle;
    returning True stops the fit.
    Source: Rhodes and Gutmann (2019), Theorem 2.
    """
    climbs = _Climbs()

    def cycle(theta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        proposals = _held(family, alpha, contrast.noise)

        def objective(theta_: Tensor, alpha_: Tensor) -> Tensor:
            draws = draw_latents(family, alpha_, contrast.data)
            return vnce_terms(model, theta_, contrast, draws, proposals).total

        return climbs.raise_both(objective, theta, alpha)

    value = vnce_value(model, family, contrast)
    return _run(cycle, climbs, value, theta, alpha, tolerance, max_cycles, on_step, contrast.device)


def fit_by_variational_em(
    model: UnnormalisedModel,
    family: VariationalFamily,
    contrast: Contrast,
    theta: ArrayLike,
    alpha: ArrayLike,
    *,
    step_iterations: int = PARTIAL_ITERATIONS,
    tolerance: float = 1e-8,
    max_cycles: int = 500,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise J_VNCE in alpha and in theta by turns, each by a few BFGS iterations.

    The E-step sees the data term alone, the M-step both. Otherwise as `fit_jointly`.
    Source: Rhodes and Gutmann (2019), after Theorem 2.
    """
    check_count("step_iterations", step_iterations)

    climbs = _Climbs()

    def cycle(theta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        def e_loss(trial: Tensor) -> Tensor:
            draws = draw_latents(family, trial, contrast.data)
            return -data_term(log_ratio(model, theta, contrast.data, draws), contrast.nu)

        alpha = climbs.lower(e_loss, alpha, step_iterations)
        return _m_step(model, family, contrast, theta, alpha, climbs, step_iterations), alpha

    value = vnce_value(model, family, contrast)
    return _run(cycle, climbs, value, theta, alpha, tolerance, max_cycles, on_step, contrast.device)


def fit_by_exact_em(
    model: UnnormalisedModel,
    posterior: VariationalFamily,
    contrast: Contrast,
    theta: ArrayLike,
    *,
    tolerance: float = 1e-8,
    max_cycles: int = 500,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise J_VNCE by EM where the posterior is known: `posterior` has theta for its alpha.

    After each E-step the bound is tight and every importance weight exact, so that the objective's
    path is J_NCE's. It never falls if the M-step's expectation is exact; with k draws that holds
    up to their error.
    Source: Rhodes and Gutmann (2019), Corollary 1.
    """
    climbs = _Climbs()

    def cycle(theta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        raised = _m_step(model, posterior, contrast, theta, theta, climbs, _FULL_ITERATIONS)
        return raised, raised

    value = vnce_value(model, posterior, contrast)
    return _run(cycle, climbs, value, theta, theta, tolerance, max_cycles, on_step, contrast.device)


def fit_nce(
    log_marginal: Callable[[Tensor, Tensor], Tensor],
    contrast: Contrast,
    theta: ArrayLike,
    *,
    tolerance: float = 1e-8,
    max_cycles: int = 20,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise J_NCE where latents can be summed out.

    `log_marginal(theta, u)` returns log phi(u), (n,). The uniforms of `contrast` are not
    used. Otherwise as `fit_jointly`; alpha is empty.
    Source: Rhodes and Gutmann (2019), eq. (4).
    """

    def value(theta: Tensor, alpha: Tensor) -> Tensor:
        ratios = [
            (log_marginal(theta, rows.u) - rows.log_noise).unsqueeze(0)
            for rows in (contrast.data, contrast.noise)
        ]
        return vnce_objective(ratios[0], ratios[1], contrast.nu).total

    climbs = _Climbs()

    def cycle(theta: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        return climbs.lower(lambda t: -value(t, alpha), theta, _FULL_ITERATIONS), alpha

    return _run(cycle, climbs, value, theta, (), tolerance, max_cycles, on_step, contrast.device)


def fit_elbo(
    model: UnnormalisedModel,
    family: VariationalFamily,
    rows: Rows,
    theta: ArrayLike,
    alpha: ArrayLike,
    *,
    tolerance: float = 1e-8,
    max_cycles: int = 20,
    on_step: OnStep | None = None,
) -> VariationalFit:
    """Raise the evidence lower bound of a *normalised* model: standard variational inference.

    On an unnormalised model it has no maximum, as c would go to minus infinity. `rows` are the
    data of a `Contrast`. Otherwise as `fit_jointly`.
    """

    def value(theta: Tensor, alpha: Tensor) -> Tensor:
        z = family.rsample(alpha, rows.u, rows.uniforms)
        return elbo(log_weight(model, family, theta, alpha, rows.u, z))

    climbs = _Climbs()
    cycle = partial(climbs.raise_both, value)
    return _run(cycle, climbs, value, theta, alpha, tolerance, max_cycles, on_step, rows.u.device)


def _m_step(
    model: UnnormalisedModel,
    family: VariationalFamily,
    contrast: Contrast,
    theta: Tensor,
    alpha: Tensor,
    climbs: _Climbs,
    max_iterations: int,
) -> Tensor:
    """Return theta raised for draws of q at alpha."""
    data, noise = (_held(family, alpha, rows) for rows in (contrast.data, contrast.noise))

    def loss(trial: Tensor) -> Tensor:
        return -vnce_terms(model, trial, contrast, data, noise).total

    return climbs.lower(loss, theta, max_iterations)


def _held(family: VariationalFamily, alpha: Tensor, rows: Rows) -> Draws:
    with torch.no_grad():
        return draw_latents(family, alpha, rows)


def vnce_value(model: UnnormalisedModel, family: VariationalFamily, contrast: Contrast) -> _Value:
    """Return J_VNCE as a function of theta and alpha."""

    def value(theta: Tensor, alpha: Tensor) -> Tensor:
        draws = (draw_latents(family, alpha, rows) for rows in (contrast.data, contrast.noise))
        return vnce_terms(model, theta, contrast, *draws).total

    return value


def _run(
    cycle: _Cycle,
    climbs: _Climbs,
    value: _Value,
    theta: ArrayLike,
    alpha: ArrayLike,
    tolerance: float,
    max_cycles: int,
    on_step: OnStep | None,
    device: torch.device,
) -> VariationalFit:
    """Repeat cycles until the objective moves by less than `tolerance`.

    That is convergence unless a climb was stuck.
    """
    check_range("tolerance", tolerance, 0, 1)
    check_count("max_cycles", max_cycles)
    point = vector("theta", theta, device), vector("alpha", alpha, device)
    path = [evaluated(value, *point)]
    status = FitStatus.MAX_ITERATIONS if math.isfinite(path[0]) else FitStatus.NON_FINITE
    for iteration in range(1, max_cycles + 1):
        if status is FitStatus.NON_FINITE:
            break
        climbs.begin_cycle()
        moved = cycle(*point)
        objective = evaluated(value, *moved)
        if not math.isfinite(objective):
            status = FitStatus.NON_FINITE
            break
        point = moved
        path.append(objective)
        step = FitStep("fit", iteration / max_cycles, iteration, objective)
        if on_step is not None and on_step(step):
            status = FitStatus.CANCELLED
            break
        if abs(path[-1] - path[-2]) < tolerance:
            if climbs.are_stuck(_MOST_LEFT * tolerance):
                return fitted(*point, status, path, _STUCK)
            status = FitStatus.CONVERGED
            break
    return fitted(*point, status, path)


def fitted(
    theta: Tensor, alpha: Tensor, status: FitStatus, path: Sequence[float], message: str = ""
) -> VariationalFit:
    """Return a fit as its user sees it; `message` where the status' own would not do."""
    found_theta, found_alpha = (part.detach().cpu().numpy().copy() for part in (theta, alpha))
    return VariationalFit(
        found_theta, found_alpha, status, message or _MESSAGES[status], tuple(path)
    )


def evaluated(value: _Value, theta: Tensor, alpha: Tensor) -> float:
    """Return the objective without its derivatives."""
    with torch.no_grad():
        return float(value(theta, alpha))


def vector(name: str, values: ArrayLike, device: torch.device) -> Tensor:
    """Return parameters as a tensor on a device; raise `ValueError` unless they are finite."""
    vector = torch.from_numpy(as_array(name, values))
    if vector.ndim != 1 or not vector.isfinite().all():
        raise ValueError(f"`{name}` must be a vector of finite numbers, got {shown(values)}")
    return vector.to(device)
