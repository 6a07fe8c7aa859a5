"""The likelihood of rows with missing cells, by rows that are drawn from the model itself.

With log phi = theta · t the log density of a row's observed cells u has the slope in theta

    s(u) = E[t | u] - E[t],

and its information is the covariance of E[t | u] and t. Both are taken at one theta from many rows
drawn under it, whose missing cells are data rows'. Draws of missing cells stand for E[t | u] in
data rows and in these alike: whatever so few of them leave wrong, s has mean 0 at the truth. And a
drawn row knows its missing cells, which are one more draw, independent of the others.

NCE falls short of the likelihood where its noise is far from the data, as it is from columns that
depend on each other strongly in another way than a Gaussian's do: few rows then tell them apart.
"""

import math
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from vnce_engine.contrastive.posterior import complete
from vnce_engine.contrastive.row_blocks import Block
from vnce_engine.contrastive.truncated_sample import ContrastiveSample, data_blocks
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.ill_conditioned import SamplingWarning
from vnce_engine.distributions.information import statistics
from vnce_engine.distributions.sampling import rows_by_sweeps
from vnce_engine.runtime.progress import Progress

FloatArray = NDArray[np.float64]

# Rows drawn from the model, for their covariance: so many at least, and for each parameter up to a
# limit, that chance in it is little. And for their mean: for each data row up to another.
_LEAST_ROWS = 20_000
_ROWS_A_PARAMETER, _MOST_FOR_PARAMETERS = 20, 50_000
_ROWS_A_DATA_ROW, _MOST_FOR_DATA_ROWS = 20, 200_000
# Of which so many are in memory at a time.
_PART = 20_000
# Gibbs sweeps from the start, and between rows of a chain.
_BURN_IN, _THINNING = 50, 5
# Of one cell by a sweep, in multiplications.
_WORK_OF_A_DRAW = 300


class LikelihoodRows:
    """The data rows of a contrastive sample, and what rows of the model say of their scores."""

    def __init__(
        self,
        sample: ContrastiveSample,
        observations: Observations,
        generator: torch.Generator,
        progress: Progress,
    ) -> None:
        """Score the `sample`'s data rows, those of `observations`, whose draws are shared."""
        self._sample = sample
        self._observations = observations
        self._generator = generator
        self._progress = progress
        self.chance = 0.0
        """Variance of the mean score by the choice of drawn rows, over that by the data rows'."""

    @property
    def num_rows(self) -> int:
        """The number of data rows, n."""
        return self._sample.num_rows

    def data_rows(self) -> Tensor:
        """Return int64 (n,): which rows of the table these are."""
        return self._sample.data_rows()

    def redraw(self, augmented: Tensor) -> None:
        """Draw rows of the model under A, K positive definite, and missing cells of all rows.

        Raises `SamplingWarning` where rows cannot be drawn, as chains do not mix.
        """
        for block in self._sample.data:
            complete(block, augmented)
        size = len(augmented) * (len(augmented) + 1) // 2
        for_covariance = max(_LEAST_ROWS, min(_ROWS_A_PARAMETER * size, _MOST_FOR_PARAMETERS))
        num_drawn = max(for_covariance, min(_ROWS_A_DATA_ROW * self.num_rows, _MOST_FOR_DATA_ROWS))
        masks = self._observations.observed[self._lenders(num_drawn).to(augmented.device)]
        moments = _Moments(size, augmented)
        rows = self._rows_of_model(augmented)
        # Whole parts, as blocks are in the order of how many cells are missing.
        for block, drawn in self._completed(masks[:for_covariance], rows, augmented):
            own = statistics(pad(drawn[block.owner.long()], (0, 1), value=1.0).mT)
            moments.add(block.mean_statistics(), own)
        sum_of_means = moments.sum_of_means
        for block, _ in self._completed(masks[for_covariance:], rows, augmented):
            sum_of_means = sum_of_means + block.sum_of_statistics()
        self._model_mean = sum_of_means / num_drawn
        self._information = moments.covariance()
        # c is no parameter of a likelihood: its slope is 0, and it is not moved.
        self._information[-1, -1] = 1.0
        self.chance = self.num_rows / num_drawn

    def information(self, augmented: Tensor) -> Tensor:
        """Return the negative Hessian (p, p), expected over rows with these missing cells."""
        return self._information * self.num_rows

    def scores(self, augmented: Tensor, is_kept: Tensor) -> Tensor:
        """Return each kept row's score (r, p), `is_kept` by row of the table, in its order."""
        position = is_kept.cumsum(dim=0) - 1
        total = augmented.new_empty(int(is_kept.sum()), len(self._model_mean))
        for block in self._sample.data_part(is_kept).data:
            total[position[block.owner.long()]] = block.mean_statistics().mT
        return total - self._model_mean

    def _rows_of_model(self, augmented: Tensor) -> Iterator[FloatArray]:
        seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator))
        with warnings.catch_warnings():
            warnings.simplefilter("error", SamplingWarning)
            return rows_by_sweeps(
                augmented[:-1, :-1].cpu().numpy(),
                np.random.default_rng(seed),
                linear=-augmented[:-1, -1].cpu().numpy(),
                burn_in=_BURN_IN,
                thinning=_THINNING,
            )

    def _next(self, num_rows: int, rows: Iterator[FloatArray]) -> Tensor:
        """Return the next rows (num_rows, d), telling of progress on the way."""
        blocks: list[FloatArray] = []
        while num_rows > 0:
            blocks.append(next(rows)[:num_rows])
            num_rows -= len(blocks[-1])
            self._progress.spend(_THINNING * blocks[-1].size * _WORK_OF_A_DRAW)
        return torch.from_numpy(np.concatenate(blocks))

    def _lenders(self, num_rows: int) -> Tensor:
        """Return int64 (num_rows,): the data rows whose missing cells drawn rows have."""
        rounds = math.ceil(num_rows / self.num_rows)
        orders = [torch.randperm(self.num_rows, generator=self._generator) for _ in range(rounds)]
        return torch.cat(orders)[:num_rows]

    def _completed(
        self, observed: Tensor, rows: Iterator[FloatArray], augmented: Tensor
    ) -> Iterator[tuple[Block, Tensor]]:
        """Yield blocks of the next `rows`, bool `observed` (r, d), and the rows they are of."""
        for part in observed.split(_PART) if len(observed) else ():
            drawn = self._next(len(part), rows).to(augmented.device)
            values = Observations(torch.where(part, drawn, 0.0), part)
            order = torch.arange(len(drawn), device=drawn.device)
            draws = self._sample.num_draws
            for block in data_blocks(values, order, None, draws, self._generator):
                self._progress.spend(block.work * len(augmented))
                complete(block, augmented)
                yield block, drawn


class _Moments:
    """What the covariance of rows' means of t with their own t is made of."""

    def __init__(self, size: int, like: Tensor) -> None:
        self._num_rows = 0
        self.sum_of_means, self._sum_of_own = (like.new_zeros(size) for _ in range(2))
        self._products = like.new_zeros(size, size)

    def add(self, means: Tensor, own: Tensor) -> None:
        """Take in both (p, b) of some rows."""
        self._num_rows += means.shape[1]
        self.sum_of_means += means.sum(dim=1)
        self._sum_of_own += own.sum(dim=1)
        self._products.addmm_(means, own.mT)

    def covariance(self) -> Tensor:
        """Return it, symmetric, by as much larger as the mean inverse would be too large."""
        n, size = self._num_rows, len(self._products)
        products = torch.addr(self._products, self.sum_of_means, self._sum_of_own, alpha=-1 / n)
        return (products + products.mT).mul_(0.5 / (n - size - 1))
