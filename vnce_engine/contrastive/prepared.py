"""A table made ready for fitting: what choosing a penalty needs to know of any model's."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor

from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.optim.constraints import Constraints
from vnce_engine.optim.surrogate import Sample, SurrogatePoint
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus

# Smallest K_ii / k0_i: a truncated normal with it is an exponential distribution for all purposes,
# and an estimate of a Gaussian's is never below 1.
SMALLEST_DIAGONAL = 0.05


class ScoredRows(Protocol):
    """Rows of a table and their scores, the slopes in theta of what an estimate maximises."""

    @property
    def num_rows(self) -> int:
        """The number of data rows, n."""

    @property
    def chance(self) -> float:
        """Variance of the mean score by what else was drawn, over that by the rows', 0 of noise.

        Noise rows belong to data rows, and their chance is in the spread of scores already.
        """

    def data_rows(self) -> Tensor:
        """Return int64 (n,): which rows of the table these are."""

    def redraw(self, augmented: Tensor) -> None:
        """Draw missing cells anew under `augmented`, in place of the draws so far, if any are."""

    def information(self, augmented: Tensor) -> Tensor:
        """Return about the negative Hessian (p, p) of the sum; see `information.py`."""

    def scores(self, augmented: Tensor, is_kept: Tensor) -> Tensor:
        """Return each kept row's score (r, p), `is_kept` by row of the table, in its order."""


class RowSample(Sample, ScoredRows, Protocol):
    """Some rows of a table against noise that carries their missing cells.

    A row's score has its noise rows'. Scores are slopes of terms in theta; see `information.py`.
    """

    @property
    def nu(self) -> float:
        """Noise rows a data row."""

    @property
    def num_draws(self) -> int:
        """Draws from q for each missing cell of a data row; 0 where q is the exact posterior."""

    def objective_by_row(self, augmented: Tensor, num_rows: int) -> Tensor:
        """Return each row's share of the objective, (num_rows,): 0 for rows of other samples.

        A row's share has its noise rows', if the sample has them.
        """

    def noise_scores(self, augmented: Tensor) -> Tensor:
        """Return the sum over noise rows of s sᵀ (p, p), s being a row's score."""

    def select(self, is_kept: Tensor) -> Self:
        """Return a sample of some data rows, bool by row of the table, and their noise rows."""

    def data_part(self, is_kept: Tensor) -> Self:
        """Return some data rows, bool by row of the table, without noise rows.

        Of such a part terms, information and objective can be asked, which are sums over its rows.
        """

    def noise_part(self) -> Self:
        """Return the noise rows alone, of which the same can be asked."""

    def wrong_probability(self, augmented: Tensor) -> Tensor:
        """Return the probability (n,) of being noise that each data row is given."""

    def effective_sample_size(self) -> float | None:
        """Return the mean share of the draws of missing cells that counts; None without any."""


RowSampleT = TypeVar("RowSampleT", bound=RowSample)


class Fit(ABC, Generic[RowSampleT]):
    """A fit that each run, a stage of the checkpoint, takes further by cycles."""

    def __init__(self, augmented: Tensor, progress: Progress) -> None:
        self.augmented = augmented
        """A (d + 1, d + 1), the last finite estimate at every moment, also after an exception."""
        self.objective_path: list[float] = []
        self.point: SurrogatePoint | None = None
        """The surrogate at the estimate; None before the first run."""
        self._progress = progress

    def run(
        self,
        sample: RowSampleT,
        penalty: Penalty,
        constraints: Constraints,
        tolerance: float,
        max_cycles: int,
    ) -> FitStatus:
        """Go on from the last estimate until a cycle changes less than `tolerance`.

        An interrupted fit's runs are taken as they ended, and the last one that is known goes on
        from its latest cycle, even if it had ended: a fit is judged at a point that was computed.
        """
        self._stage = self._progress.checkpoint.stage()
        if self._stage.saved is not None:
            augmented, path, ended = self._stage.saved
            max_cycles = max(max_cycles - (len(path) - len(self.objective_path)), 1)
            self._go_on_from(augmented)
            self.objective_path = list(path)
            if ended is not None and not self._stage.is_last:
                return FitStatus(ended)
        status = self._cycle(sample, penalty, constraints, tolerance, max_cycles)
        self._save(status)
        return status

    @abstractmethod
    def _cycle(
        self,
        sample: RowSampleT,
        penalty: Penalty,
        constraints: Constraints,
        tolerance: float,
        max_cycles: int,
    ) -> FitStatus:
        """Take cycles until one changes less than `tolerance`; end each by `_end_cycle`."""

    def _go_on_from(self, augmented: Tensor) -> None:
        self.augmented = augmented

    def _end_cycle(self, point: SurrogatePoint) -> None:
        self.augmented, self.point = point.augmented, point
        self.objective_path.append(float(point.value))
        self._save(None)

    def _save(self, status: FitStatus | None) -> None:
        ended = None if status is None else str(status)
        self._stage.save((self.augmented, tuple(self.objective_path), ended))


@dataclass(frozen=True)
class PreparedTable(ABC, Generic[RowSampleT]):
    """Scaled rows against their noise; subclasses are of one model each."""

    observations: Observations
    """Rows with something observed, columns scaled."""
    scale: Tensor
    """(d,): the unit of each scaled column."""
    sample: RowSampleT
    """All rows, and noise."""
    generator: torch.Generator
    """Source of further draws."""

    @property
    def num_rows(self) -> int:
        """Rows with something observed."""
        return self.observations.num_rows

    @property
    def num_columns(self) -> int:
        """The number of columns, d."""
        return self.observations.num_columns

    @property
    def clusters(self) -> Tensor | None:
        """Return int64 (n,), the cluster of each row; None where each row is independent."""
        return self.observations.shared_clusters

    @property
    def num_independent(self) -> int:
        """The number of clusters, or of rows where these are independent."""
        return self.num_rows if self.clusters is None else int(self.clusters.max()) + 1

    def penalty(
        self,
        strength: float | None,
        kind: PenaltyKind,
        num_rows: int,
        barrier_rows: float = 0.0,
        *,
        has_linear: bool,
    ) -> Penalty:
        """Return the penalty for a fit to `num_rows` rows; a strength of None is none at all."""
        inverse_k0 = self.inverse_k0(has_linear=has_linear)
        return Penalty(strength or 0.0, kind, inverse_k0, num_rows, barrier_rows)

    def constraints(
        self, graph: Tensor | None = None, *, has_linear: bool, is_definite: bool = False
    ) -> Constraints:
        """Return where A may lie: h free or zero, K_ii at least a twentieth of k0_i.

        `graph`, bool (d, d), has the interactions that may differ from zero.
        """
        floor = SMALLEST_DIAGONAL / self.inverse_k0(has_linear=has_linear)
        return Constraints(has_linear, floor, graph, is_definite)

    def scored_rows(self, sample: RowSampleT, progress: Progress) -> ScoredRows:
        """Return by what scores of a final sample's rows a last step without the penalty goes."""
        return sample

    def is_noise_near(self, sample: RowSampleT, augmented: Tensor) -> bool:
        """Return whether the noise of a final sample is as near to the data as it can be made."""
        return True

    def interaction_units(self, augmented: Tensor, *, has_linear: bool) -> Tensor:
        """Return (d,): K_ij times the roots of entries i and j is judged for its size."""
        return self.inverse_k0(has_linear=has_linear)

    @classmethod
    @abstractmethod
    def prepare(
        cls,
        observations: Observations,
        noise_ratio: int,
        noise_draws: str,
        generator: torch.Generator,
        noise_scale: float = 1.0,
    ) -> Self:
        """Scale the columns, and draw `noise_ratio` noise rows a data row, "sobol" or "random".

        `noise_scale` widens the noise, which otherwise resembles the data, or narrows it below 1.
        """

    @abstractmethod
    def subsample(self, rows: Tensor) -> RowSampleT:
        """Return the given rows alone, int64 (r,), against new noise as much as `sample` has."""

    @abstractmethod
    def with_at_most(self, num_rows: int) -> Self:
        """Return the problem of so many of the rows, taken at random, in the same units."""

    @abstractmethod
    def final_sample(self, augmented: Tensor) -> RowSampleT:
        """Return all rows with the noise of the last cycles, which start there."""

    @abstractmethod
    def inverse_k0(self, *, has_linear: bool) -> Tensor:
        """Return 1 / k0 (d,), k0 being about the diagonal that K has without interactions."""

    @abstractmethod
    def start(self, *, has_linear: bool, is_near_data: bool = False) -> Tensor:
        """Return A of a model without interactions, or, where there is one, one near the data."""

    @abstractmethod
    def cycles(self, start: Tensor, progress: Progress) -> Fit[RowSampleT]:
        """Return a fit that is to go on from `start`."""

    @abstractmethod
    def model(self, augmented: Tensor) -> QuadraticModel:
        """Return the estimate in the units of the table that was given."""
