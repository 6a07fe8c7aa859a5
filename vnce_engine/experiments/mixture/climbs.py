"""Ways up an objective of one sample from several starts: all parameters together, or exact EM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vnce_engine.experiments.mixture import objectives
from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.methods import Method
from vnce_engine.experiments.mixture.model import log_posterior
from vnce_engine.experiments.mixture.objectives import Density
from vnce_engine.optim.batched_bfgs import maximise
from vnce_engine.runtime.checkpoint import Checkpoint

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
    recorded: list[Tensor] = []

    def record(values: Tensor) -> None:
        recorded.append(values)
        on_iteration(values)

    found = maximise(
        lambda parameters, _: method.objective(parameters, data),
        starts[:, list(method.places)],
        max_iterations,
        record,
    )
    return Climb(found.parameters, found.values, _path(recorded, found.values))


def climb_by_exact_em(
    density: Density,
    data: MixtureData,
    starts: Tensor,
    max_iterations: int,
    on_iteration: OnIteration,
    checkpoint: Checkpoint,
) -> Climb:
    """Raise J_VNCE of one sample by EM, q the posterior, from `starts` (s, p) of the model's own.

    After an E-step the bound is tight, so that the values are J_NCE's and never fall. Each M-step
    goes all the way up. Source: Rhodes and Gutmann (2019), Corollary 1.
    """
    stage = checkpoint.stage()
    reached, recorded = (starts, ()) if stage.saved is None else stage.saved
    em = _ExactEm(density, data, reached, recorded)
    while em.num_steps < max_iterations and not em.is_over:
        # A step on a long column takes long: a caller hears of its iterations too.
        em.step(lambda _: on_iteration(em.values))
        stage.save((em.parameters.clone(), tuple(em.recorded)))
        on_iteration(em.values)
    return Climb(em.parameters, em.values, _path(em.recorded, em.values))


class _ExactEm:
    """The state between steps: where each start has come to, and which still move."""

    def __init__(
        self, density: Density, data: MixtureData, starts: Tensor, recorded: Sequence[Tensor]
    ) -> None:
        self._density, self._data = density, data
        self.parameters = starts.clone()
        self.values = objectives.nce(density, starts, data, data.nu)
        self.recorded = list(recorded)
        self._moving = torch.arange(len(starts))

    @property
    def num_steps(self) -> int:
        """The number of steps done."""
        return len(self.recorded)

    @property
    def is_over(self) -> bool:
        """Whether no start moves any more."""
        return not len(self._moving)

    def step(self, on_iteration: OnIteration) -> None:
        """Take an E-step and an M-step from all starts that still move."""
        moving = self._moving
        log_q = log_posterior(self._density(self.parameters[moving], self._data.x))  # (2, a, n)

        def objective(trial: Tensor, rows: Tensor) -> Tensor:
            return objectives.vnce(self._density, trial, log_q[:, rows], self._data, self._data.nu)

        raised = maximise(objective, self.parameters[moving], on_iteration=on_iteration).parameters
        reached = objectives.nce(self._density, raised, self._data, self._data.nu)
        gain = reached - self.values[moving]
        self.parameters[moving], self.values[moving] = raised, reached
        self.recorded.append(self.values.clone())
        self._moving = moving[gain > _EM_TOLERANCE]


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


def _path(recorded: Sequence[Tensor], last: Tensor) -> Tensor:
    """Return the values (iterations, s) of all iterations; `last` where none was needed."""
    return torch.stack(list(recorded) or [last])
