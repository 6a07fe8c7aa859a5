"""Rows whose missing cells are filled by draws from q, in blocks that fit a processor's cache.

A block holds its rows transposed, one coordinate a contiguous line, because every pass over the
data is then a product of a small matrix with a wide one. The last line is constant 1 and carries
the linear term and the log partition (see `TruncatedGaussian.augmented`).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from vnce_engine.shelf import Shelf

# Columns of a block: with d = 20 to 100 coordinates it then stays inside a level-two cache.
BLOCK_WIDTH = 2048
# Of the uniforms that are kept.
_STEP = 2.0**-31


class Cells(NamedTuple):
    """Where a block's missing cells are; int64 (p,) each."""

    coordinate: Tensor
    column: Tensor
    flat: Tensor
    """coordinate * b + column"""


@dataclass
class Block:
    """b rows of one class, data or noise, with k draws of their missing cells.

    The missing cells are packed, coordinate by coordinate, into vectors of length p. An E-step
    overwrites `draws`, `cell_mean` and `log_ratio_offset` in place; all else stays as built.
    """

    is_noise: bool
    draws: Tensor
    """(d + 1, k, b): the rows, their missing cells filled by each draw from q."""
    owner: Tensor
    """int32 (b,): the data row whose mask each row carries."""
    packed_column: Tensor
    """int16 (p,): the row within the block of each missing cell. Kept short because a long table
    has millions; indexing takes int64."""
    counts: list[int]
    """Missing cells of each of the d coordinates."""
    levels: Tensor
    """int32 (k, p), from 1 on: the uniforms of the draws in steps of 2^-31, to which Sobol points
    are exact; half as long as the uniforms themselves."""
    cell_mean: Tensor
    """(p,): the mean under q of each missing cell. In single precision for noise rows, of which
    there are many: it is where their next sweep starts, and no more."""
    ceiling: Tensor
    """(d,): q's mu goes no higher, so that no draw runs away; see `mean_field`."""
    log_noise: Tensor
    """(b,): log marginal noise density of the observed cells."""
    log_ratio_offset: Tensor
    """(k, b): -log q - log noise, the part of the log ratio that theta does not enter."""

    @classmethod
    def of_rows(
        cls,
        values: Tensor,
        observed: Tensor,
        *,
        column_mean: Tensor,
        ceiling: Tensor,
        is_noise: bool,
        uniforms: Tensor,
        owner: Tensor,
        log_noise: Tensor,
    ) -> "Block":
        """Return a block of rows `values` (b, d); q's means start at `column_mean` (d,)."""
        num_rows, num_columns = values.shape
        num_draws = uniforms.shape[0]
        draws = values.new_ones(num_columns + 1, num_draws, num_rows)
        draws[:-1] = values.mT.unsqueeze(1)
        coordinate, column = (~observed.mT).nonzero(as_tuple=True)
        return cls(
            is_noise=is_noise,
            draws=draws,
            owner=owner.to(torch.int32),
            packed_column=column.to(torch.int16),
            counts=(~observed).sum(dim=0).tolist(),
            levels=(uniforms / _STEP).to(torch.int32).clamp_(min=1),
            cell_mean=column_mean.to(torch.float32 if is_noise else values.dtype)[coordinate],
            ceiling=ceiling,
            log_noise=log_noise,
            log_ratio_offset=values.new_zeros(num_draws, num_rows),
        )

    def laid_on(self, shelf: Shelf) -> "Block":
        """Return the same block, its memory on a shelf."""
        return replace(
            self,
            draws=shelf.lay(self.draws),
            owner=shelf.lay(self.owner),
            packed_column=shelf.lay(self.packed_column),
            levels=shelf.lay(self.levels),
            cell_mean=shelf.lay(self.cell_mean),
            log_noise=shelf.lay(self.log_noise),
            log_ratio_offset=shelf.lay(self.log_ratio_offset),
        )

    @property
    def coordinate(self) -> Tensor:
        """int64 (p,), ascending: the coordinate of each missing cell."""
        counts = self.packed_column.new_tensor(self.counts).long()
        return torch.repeat_interleave(counts, output_size=len(self.packed_column))

    @property
    def column(self) -> Tensor:
        """int64 (p,): the row, counted within the block, of each missing cell."""
        return self.packed_column.long()

    @property
    def uniforms(self) -> Tensor:
        """(k, p), strictly between 0 and 1: what q's quantile functions map to draws."""
        return self.levels.to(self.draws.dtype).mul_(_STEP)

    @property
    def num_draws(self) -> int:
        """The number of draws, k."""
        return self.draws.shape[1]

    @property
    def num_rows(self) -> int:
        """The number of rows, b."""
        return self.draws.shape[2]

    @property
    def flat_draws(self) -> Tensor:
        """The draws as one wide matrix (d + 1, k * b), sharing memory."""
        return self.draws.flatten(1)

    @property
    def work(self) -> int:
        """Multiplications in one product of a (d + 1, d + 1) matrix with the draws."""
        return self.draws.numel() * self.draws.shape[0]

    def state(self) -> list[Tensor]:
        """Return what an E-step starts from: q's means."""
        return [self.cell_mean.clone()]

    def restore(self, state: list[Tensor]) -> None:
        """Let the next E-step start from what `state` returned."""
        (cell_mean,) = state
        self.cell_mean.copy_(cell_mean)

    def cells(self) -> Cells:
        """Return where the missing cells are."""
        coordinate, column = self.coordinate, self.column
        return Cells(coordinate, column, coordinate * self.num_rows + column)

    def expected_rows(self, place: Cells) -> Tensor:
        """Return (d + 1, b): observed values, and the mean under q in the missing cells' place."""
        rows = self.draws[:, 0].clone()
        rows.view(-1).scatter_(0, place.flat, self.cell_mean.to(rows.dtype))
        return rows

    def fill(self, place: Cells, cells: Tensor) -> None:
        """Put draws (k, p) into the missing cells' place."""
        stride, step = self.draws.stride()[:2]
        flat = self.draws.view(-1)
        first = place.coordinate * stride + place.column
        for draw, own in enumerate(cells):
            flat.scatter_(0, first + draw * step, own)
