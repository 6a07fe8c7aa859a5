"""The M-step's surrogate objective: penalised, a function of A, the draws from q fixed.

Matrices stand in the space of symmetric (d + 1, d + 1) matrices with inner product tr(A B). With
a = (x, 1) of a completed row, its log ratio is -½ aᵀAa + offset, so that value and gradient are
two matrix products over the rows: A times the rows, and the weighted rows times themselves.
"""

from dataclasses import dataclass
from typing import Protocol, Self

from torch import Tensor

from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.symmetric_products import symmetric_part
from vnce_engine.penalties.penalty import Penalty, PenaltyCurvature
from vnce_engine.runtime.progress import Progress


class Preconditioner(Protocol):
    """An approximate inverse of a curvature, for which rows may be measured from a centre."""

    def __call__(self, residual: Tensor) -> Tensor:
        """Return about the inverse curvature times a symmetric `residual` (d + 1, d + 1)."""

    def restricted(self, is_free: Tensor) -> Self:
        """Return the preconditioner of the equations of the entries that are free, symmetric."""

    def centred(self, gradient: Tensor) -> Tensor:
        """Return a gradient (d + 1, d + 1), kept symmetric, for rows measured from the centre."""

    def about_centre(self, step: Tensor) -> Tensor:
        """Return a step in K (d + 1, d + 1) with the h and c that it takes along."""


class Curvature(Protocol):
    """A positive semi-definite operator on symmetric matrices, near a surrogate's negative Hessian.

    The penalty's convex part is in it.
    """

    @property
    def is_free(self) -> Tensor:
        """Bool (d + 1, d + 1), symmetric: False where an entry of A stays as it is."""

    @property
    def total_weight(self) -> float:
        """The weight of all rows; 0 where they have no curvature."""

    def product(self, direction: Tensor, progress: Progress) -> Tensor:
        """Return the operator times a symmetric `direction`."""

    def diagonal(self) -> Tensor:
        """Return its diagonal."""

    def restricted(self, is_free: Tensor) -> Self:
        """Return the operator on the entries that are free."""

    def preconditioner(self, constraints: Constraints, *, is_sparse: bool) -> Preconditioner:
        """Return an approximate inverse for all that is estimated.

        `is_sparse` says that many of those entries will stay as they are.
        """


class Sample(Protocol):
    """Rows whose terms, summed, are maximised: of data and noise to be told apart, or of data."""

    @property
    def num_rows(self) -> int:
        """The number of data rows, n."""

    def terms(self, augmented: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return the sum of the terms, and its gradient in A."""

    def curvature(self, augmented: Tensor, penalty: PenaltyCurvature, is_free: Tensor) -> Curvature:
        """Return about the negative Hessian of the terms over n, and the penalty's part."""


@dataclass(frozen=True)
class Surrogate:
    """J(A) = 1/n sum_rows mean_draws log sigma(±(log ratio - log nu)) - penalty.

    The plus sign is for data rows, the minus sign for noise rows. J without its penalty is concave.
    """

    sample: Sample
    penalty: Penalty
    constraints: Constraints

    def at(self, augmented: Tensor, progress: Progress) -> "SurrogatePoint":
        """Evaluate the surrogate, its gradient and its curvature at `augmented`."""
        value, gradient = self.sample.terms(augmented, progress)
        num_rows = self.sample.num_rows
        precision = augmented[:-1, :-1]
        value = value / num_rows
        gradient = symmetric_part(gradient / num_rows)
        gradient[:-1, :-1] = self.penalty.ascent(precision, gradient[:-1, :-1])
        return SurrogatePoint(
            surrogate=self,
            augmented=augmented,
            value=value - self.penalty.value(precision),
            gradient=gradient * self.constraints.estimated(),
        )


@dataclass(frozen=True)
class SurrogatePoint:
    """A point of the surrogate."""

    surrogate: Surrogate
    augmented: Tensor
    value: Tensor
    gradient: Tensor
    """(d + 1, d + 1), exactly symmetric; zero in entries that are not estimated. Where the penalty
    has a kink, the subgradient of least size."""

    def is_free(self) -> Tensor:
        """Return bool (d + 1, d + 1): the entries that may move along the gradient."""
        free = self.surrogate.constraints.free(self.augmented, self.gradient)
        if self.surrogate.penalty.is_nonsmooth:
            free &= (self.augmented != 0) | (self.gradient != 0)
        return free

    def curvature(self, *, is_penalty_bound: bool = False) -> Curvature:
        """Return about the negative Hessian here; see `Penalty.curvature`."""
        surrogate = self.surrogate
        penalty = surrogate.penalty.curvature(self.augmented[:-1, :-1], is_bound=is_penalty_bound)
        return surrogate.sample.curvature(self.augmented, penalty, self.is_free())
