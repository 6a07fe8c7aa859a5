"""What a fit reports: steps while it runs, its status and warnings when it has ended."""

from dataclasses import dataclass
from enum import StrEnum

from vnce_engine.runtime.checkpoint import Checkpoint


class FitStatus(StrEnum):
    """How a fit ended. Estimates are those of the last finite point in every case."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "max_iterations"
    NON_FINITE = "non_finite"
    CANCELLED = "cancelled"


# In words, where an estimator has none of its own.
MESSAGES = {
    FitStatus.CONVERGED: "The fit converged.",
    FitStatus.NON_FINITE: "The objective or its gradient became infinite or undefined.",
    FitStatus.CANCELLED: "The fit was cancelled; the last finite estimate is returned.",
}


@dataclass(frozen=True)
class FitStep:
    """One report of a running fit."""

    stage: str
    """"transform", "linear term", "penalty", "fit" or "uncertainty"."""
    fraction: float
    """Share of the whole that is done, from 0 to 1; it never falls."""
    iteration: int
    """Cycles done in this stage."""
    objective: float | None
    """Latest penalised objective, nats a row; None before there is one."""
    checkpoint: Checkpoint | None = None
    """What the fit has done so far, to be stored if it is to be gone on with after an interruption;
    None where an estimator cannot go on."""


@dataclass(frozen=True)
class FitWarning:
    """Something a reader of the result must know."""

    code: str
    message: str
    columns: tuple[str, ...] = ()
    """Names of the columns concerned, where it is about some of them."""
