"""What every rule of choosing a penalty returns."""

from dataclasses import dataclass
from enum import StrEnum

from torch import Tensor

from vnce_engine.inference.result import PenaltyStep, Stability
from vnce_engine.penalties.penalty import PenaltyKind


class Selection(StrEnum):
    """The rule by which the penalty's strength, or the graph, is chosen."""

    HELD_OUT = "held-out"
    EBIC = "ebic"
    STABILITY = "stability"


@dataclass(frozen=True)
class PenaltyChoice:
    """The chosen strength, the path to it, and a point to start the final fit from."""

    strength: float
    path: tuple[PenaltyStep, ...]
    augmented: Tensor
    kind: PenaltyKind | None = None
    """The kind of penalty that was chosen; None where that was not open."""
    graph: Tensor | None = None
    """bool (d, d): the graph to which the final fit, then without the penalty, is restricted."""
    stability: Stability | None = None
    is_settled: bool = True
    """Whether any of the fits that were compared had settled."""
    relaxation: float | None = None
    """By how much the adaptive penalty of the final fit is relaxed, see `Penalty.relaxed`; None
    where that was not judged."""


def graph_of(augmented: Tensor) -> Tensor:
    """Return bool (d, d): the interactions that are not zero, False on the diagonal."""
    return (augmented[:-1, :-1] != 0).fill_diagonal_(False)


def num_edges(augmented: Tensor) -> int:
    """Return the number of pairs whose interaction is not zero."""
    return int(graph_of(augmented).sum()) // 2
