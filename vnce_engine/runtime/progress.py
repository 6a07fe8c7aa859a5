"""Progress reports, and the way a caller stops a fit."""

from collections.abc import Callable
from dataclasses import replace

from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep

OnStep = Callable[[FitStep], bool | None]

# Multiplications between two reports within one pass over the rows: about a tenth of a second on
# one core, so that a caller hears of a large fit as often as of a small one.
_WORK_PER_REPORT = 10**9


class FitCancelledError(Exception):
    """The caller asked to stop."""


class Progress:
    """Tells `on_step` how far a fit is, and raises `FitCancelledError` when it returns True.

    A fit has stages and these have parts; the fraction never falls. The engine has no clock: it
    counts multiplications to know when a report is due.
    """

    def __init__(
        self,
        on_step: OnStep | None,
        checkpoint: Checkpoint | None = None,
        *,
        begins_at: float = 0.0,
    ) -> None:
        self.checkpoint = checkpoint or Checkpoint()
        """What the fit has done; see `vnce_engine.runtime.checkpoint`."""
        self._on_step = on_step
        # The share of the whole that was done before.
        self._begins_at = begins_at
        self._stage = "fit"
        self._stage_span = (0.0, 1.0)
        self._span = (0.0, 1.0)
        self._fraction = 0.0
        self._iteration = 0
        self._objective: float | None = None
        self._work = 0

    def enter(self, stage: str, start: float, end: float) -> None:
        """Begin a stage that takes the fit from fraction `start` to `end`."""
        self._stage, self._stage_span = stage, (start, end)
        self._iteration, self._objective = 0, None
        self.enter_part(0.0, 1.0)

    def enter_part(self, start: float, end: float) -> None:
        """Begin a part that takes the present stage from share `start` to `end`."""
        low, high = self._stage_span
        self._span = (low + (high - low) * start, low + (high - low) * end)
        self.report(0.0, self._iteration, self._objective)

    def report(self, share: float, iteration: int, objective: float | None) -> None:
        """Report that `share` of the present part is done."""
        start, end = self._span
        self._fraction = max(self._fraction, start + (end - start) * min(max(share, 0.0), 1.0))
        self._iteration, self._objective = iteration, objective
        self._tell()

    def spend(self, work: int) -> None:
        """Count `work` multiplications; report again when many have passed since the last time."""
        self._work += work
        if self._work >= _WORK_PER_REPORT:
            self._tell()

    def _tell(self) -> None:
        self._work = 0
        if self._on_step is None:
            return
        fraction = self._begins_at + (1 - self._begins_at) * self._fraction
        step = FitStep(self._stage, fraction, self._iteration, self._objective, self.checkpoint)
        if self._on_step(step):
            raise FitCancelledError


def within(on_step: OnStep | None, done: int, total: int, name: str) -> OnStep | None:
    """Return `on_step` for one fit, called `name`, out of `total` of which so many are done."""
    if on_step is None:
        return None

    def report(step: FitStep) -> bool | None:
        return on_step(replace(step, stage=name, fraction=(done + step.fraction) / total))

    return report
