"""What an experiment is: parts that are computed apart, and a summary of their rows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from vnce_engine.runtime.checks import shown
from vnce_engine.runtime.progress import OnStep

# None where a number is undefined; never NaN or infinite, which JSON cannot hold.
Scalar = str | int | float | None
# A line of the experiment's data. Where there are several tables, `table` names the line's own.
Row = Mapping[str, Scalar]
# Returns seconds; differences count.
Clock = Callable[[], float]


@dataclass(frozen=True)
class Part:
    """A piece of work that depends on no other, of a second to some minutes."""

    label: str
    """What it computes, such as "ring, data set 4"."""
    estimated_seconds: float
    """CPU seconds on one thread of a machine of about 50 GFLOP/s."""


@dataclass(frozen=True)
class SummaryTable:
    """A table that sums the rows up."""

    name: str
    """Short, fit for a file name."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]


class Experiment(Protocol):
    """An experiment with all its options, the seed included; frozen."""

    @property
    def name(self) -> str:
        """Its name, such as "mixture-em"."""

    @property
    def seed(self) -> int:
        """Seed of every draw."""

    def parts(self) -> tuple[Part, ...]:
        """Return what it is split into."""

    def run(self, index: int, on_step: OnStep | None = None) -> tuple[Row, ...]:
        """Return the rows of one part, the same at every call.

        Raises `FitCancelledError` if `on_step` returns True.
        """

    def summarise(self, rows: Sequence[Row]) -> tuple[SummaryTable, ...]:
        """Return what the rows show; those of failed parts may be absent."""


def check_known(option: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raise `ValueError`, which says what is `known`, unless all `names` of an option are."""
    for name in names:
        if name not in known:
            raise ValueError(f"`{option}` must be among {', '.join(known)}, got {shown(name)}")
