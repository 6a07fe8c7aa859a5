"""Ways up an objective of one sample from several starts: all parameters together, or exact EM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.batched_bfgs import maximise
from vnce_engine.mixture.data import MixtureData
from vnce_engine.mixture.methods import Density, Method, nce_objective, vnce_objective
from vnce_engine.mixture.model import log_posterior

# EM is over for a start whose objective has risen by less, in nats a row.
_EM_TOLERANCE = 1e-12

# Hears the objectives (s,) after every iteration; whatever it raises ends the climb.
OnIteration = Callable[[Tensor], None]


@dataclass(frozen=True)
class Climb:
    """Where s starts have led."""

    parameters: Tensor
    """(s, p)"""
    values: Tensor
    """(s,): the objective there, nats a row; not finite where it never was"""
    paths: Tensor
    """(iterations, s): the objective after each; it stays what it is where a climb is over"""


def climb_together(
    method: Method,
    data: MixtureData,
    starts: Tensor,
    max_iterations: int,
    on_iteration: OnIteration,
) -> Climb:
    """Raise the method's objective of one sample, x (1, n), in all parameters by BFGS.

    `starts` (s, 5) hold all parameters that any method has, those returned the method's own.
    """
    recorder = _Recorder(on_iteration)
    found = maximise(
        lambda parameters, _: method.objective(parameters, data),
        starts[:, list(method.places)],
        max_iterations,
        recorder,
    )
    return Climb(found.parameters, found.values, recorder.paths(found.values))


def climb_by_exact_em(
    density: Density,
    data: MixtureData,
    starts: Tensor,
    max_iterations: int,
    on_iteration: OnIteration,
) -> Climb:
    """Raise J_VNCE of one sample by EM, q the posterior, from `starts` (s, p) of the model's own.

    After an E-step the bound is tight, so that the values are J_NCE's and never fall. Each M-step
    goes all the way up. Source: Rhodes and Gutmann (2019), Corollary 1.
    """
    recorder = _Recorder(on_iteration)
    parameters = starts.clone()
    values = nce_objective(density, parameters, data)
    moving = torch.arange(len(starts))
    for _ in range(max_iterations):
        raised = _m_step(density, data, parameters[moving], lambda _: on_iteration(values))
        reached = nce_objective(density, raised, data)
        gain = reached - values[moving]
        parameters[moving], values[moving] = raised, reached
        recorder(values.clone())
        moving = moving[gain > _EM_TOLERANCE]
        if not len(moving):
            break
    return Climb(parameters, values, recorder.paths(values))


def _m_step(
    density: Density, data: MixtureData, parameters: Tensor, on_iteration: OnIteration
) -> Tensor:
    log_q = log_posterior(density(parameters, data.x))  # (2, a, n)

    def objective(trial: Tensor, rows: Tensor) -> Tensor:
        return vnce_objective(density, trial, log_q[:, rows], data)

    # A step on a long column takes long: a caller hears of its iterations too.
    return maximise(objective, parameters, on_iteration=on_iteration).parameters


def joined(climbs: Sequence[Climb]) -> Climb:
    """Return the climbs of several groups of starts as one."""
    longest = max(len(climb.paths) for climb in climbs)
    return Climb(
        torch.cat([climb.parameters for climb in climbs]),
        torch.cat([climb.values for climb in climbs]),
        torch.cat([_prolonged(climb.paths, longest) for climb in climbs], dim=1),
    )


def _prolonged(paths: Tensor, length: int) -> Tensor:
    return torch.cat([paths, paths[-1:].expand(length - len(paths), -1)])


class _Recorder:
    """Keeps the values of all iterations."""

    def __init__(self, on_iteration: OnIteration) -> None:
        self._on_iteration = on_iteration
        self._values: list[Tensor] = []

    def __call__(self, values: Tensor) -> None:
        self._values.append(values)
        self._on_iteration(values)

    def paths(self, last: Tensor) -> Tensor:
        """Return the values (iterations, s); `last` where no iteration was needed."""
        return torch.stack(self._values or [last])
