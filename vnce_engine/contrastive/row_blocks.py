"""Rows whose missing cells are filled by draws, in blocks that fit a processor's cache.

A block holds its rows transposed, one coordinate a contiguous line, because every pass over the
data is then a product of a small matrix with a wide one. The last line is constant 1 and carries
the linear term and the log partition (see `QuadraticModel.augmented`).
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vnce_engine.contrastive.objective import DATA, NOISE
from vnce_engine.distributions.information import statistics, to_slope
from vnce_engine.optim.symmetric_products import quadratics
from vnce_engine.runtime.arena import Arena

# Columns of a block: with d = 20 to 100 coordinates it then stays inside a level-two cache.
BLOCK_WIDTH = 2048
# Of the uniforms that are kept.
_STEP = 2.0**-31


@dataclass
class Block:
    """b rows of one class, data or noise, with k draws of their missing cells.

    o data rows lend their missing cells. Of data, b is o and each row has k draws; of noise, k is 1
    and there are c copies of each mask, row number (copy, owner) of the block being copy * o +
    owner. Either way a line of `draws` is c by o numbers, with c = k for data.

    An E-step overwrites `draws`, `log_ratio_offset` and `draw_weight` in place; all else stays.
    """

    is_noise: bool
    draws: Tensor
    """(d + 1, k, b): the rows, their missing cells filled by each draw."""
    owner: Tensor
    """int32 (b,): the data row whose mask each row carries."""
    missing: Tensor
    """int16 (m, o): the columns of each owner's missing cells, ascending, then d where it has
    fewer than m. Kept short because a long table has millions; indexing takes int64."""
    levels: Tensor
    """int32 (m, c, o), from 1 on: the uniforms of the draws in steps of 2^-31, to which Sobol
    points are exact; half as long as the uniforms themselves."""
    log_noise: Tensor
    """(b,): log marginal noise density of the observed cells."""
    log_ratio_offset: Tensor
    """(k, b): minus the log density of the draw and of the noise, the part of the log ratio that
    theta does not enter."""
    draw_weight: Tensor
    """(k, b): what each draw counts for; a row's sum to 1."""

    @classmethod
    def of_rows(
        cls,
        values: Tensor,
        observed: Tensor,
        *,
        is_noise: bool,
        uniforms: Tensor,
        owner: Tensor,
        log_noise: Tensor,
    ) -> "Block":
        """Return a block of rows `values` (b, d), 0 or anything where not `observed` (o, d).

        `uniforms` (c, o, d) are of all cells; those of missing cells are kept.
        """
        num_rows, num_columns = values.shape
        num_draws = 1 if is_noise else uniforms.shape[0]
        draws = values.new_ones(num_columns + 1, num_draws, num_rows)
        draws[:-1] = values.mT.unsqueeze(1)
        missing = missing_columns(observed)
        padded = torch.nn.functional.pad(uniforms.movedim(-1, 0), (0, 0, 0, 0, 0, 1), value=0.5)
        own = padded.gather(0, missing.unsqueeze(1).expand(-1, uniforms.shape[0], -1))
        return cls(
            is_noise=is_noise,
            draws=draws,
            owner=owner.to(torch.int32),
            missing=missing.to(torch.int16),
            levels=(own / _STEP).to(torch.int32).clamp_(min=1),
            log_noise=log_noise,
            log_ratio_offset=(-log_noise).expand(num_draws, -1).clone(),
            draw_weight=values.new_full((num_draws, num_rows), 1 / num_draws),
        )

    def laid_on(self, arena: Arena) -> "Block":
        """Return the same block, its memory in an arena."""
        return replace(
            self,
            draws=arena.store(self.draws),
            owner=arena.store(self.owner),
            missing=arena.store(self.missing),
            levels=arena.store(self.levels),
            log_noise=arena.store(self.log_noise),
            log_ratio_offset=arena.store(self.log_ratio_offset),
            draw_weight=arena.store(self.draw_weight),
        )

    def of_owners(self, is_kept: Tensor) -> "Block":
        """Return a copy of the rows of some owners, bool (o,)."""
        index = is_kept.nonzero().flatten()

        def kept(lines: Tensor) -> Tensor:
            by_owner = lines.view(*lines.shape[:-2], -1, self.num_owners)
            rows = by_owner.index_select(-1, index)
            return rows.reshape(*lines.shape[:-1], -1)

        return replace(
            self,
            draws=kept(self.draws),
            owner=kept(self.owner.unsqueeze(0))[0],
            missing=self.missing[:, index],
            levels=self.levels[:, :, index],
            log_noise=kept(self.log_noise.unsqueeze(0))[0],
            log_ratio_offset=kept(self.log_ratio_offset),
            draw_weight=kept(self.draw_weight),
        )

    @property
    def sign(self) -> float:
        """The sign of its rows' class in the objective."""
        return NOISE if self.is_noise else DATA

    @property
    def uniforms(self) -> Tensor:
        """(m, c, o), strictly between 0 and 1: what quantile functions map to draws."""
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
    def num_owners(self) -> int:
        """The number of data rows that lend their missing cells, o."""
        return self.missing.shape[1]

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return not len(self.missing)

    @property
    def flat_draws(self) -> Tensor:
        """The draws as one wide matrix (d + 1, k * b), sharing memory."""
        return self.draws.flatten(1)

    @property
    def by_owner(self) -> Tensor:
        """The draws as (d + 1, c, o), sharing memory."""
        return self.draws.view(len(self.draws), -1, self.num_owners)

    @property
    def work(self) -> int:
        """Multiplications in one product of a (d + 1, d + 1) matrix with the draws."""
        return self.draws.numel() * self.draws.shape[0]

    def fill(self, columns: Tensor, cells: Tensor | float) -> None:
        """Put `cells` (m, c, o) into the missing cells' place, int64 `columns` (m, 1, o)."""
        lines = self.by_owner
        index = columns.expand(-1, lines.shape[1], -1)
        if isinstance(cells, Tensor):
            lines.scatter_(0, index, cells)
        else:
            lines.scatter_(0, index, cells)
        lines[-1] = 1.0  # where the places that no cell needs have gone

    def mean_statistics(self) -> Tensor:
        """Return (p, b): the mean over each row's draws of t; see `information.py`."""
        if self.num_draws == 1:
            return statistics(self.flat_draws)
        weighted = (self.draws * self.draw_weight).permute(2, 0, 1)
        return to_slope(-0.5 * (weighted @ self.draws.permute(2, 1, 0))).mT

    def sum_of_statistics(self) -> Tensor:
        """Return (p,): the sum over rows of `mean_statistics`, without those of each row."""
        weighted = self.flat_draws * self.draw_weight.flatten()
        return to_slope(-0.5 * (weighted @ self.flat_draws.mT))

    def log_ratios(self, augmented: Tensor) -> Tensor:
        """Return log phi - log q - log noise (k, b) of the draws under `augmented`."""
        quadratic = quadratics(augmented, self.flat_draws).view(self.num_draws, -1)
        return torch.sub(self.log_ratio_offset, quadratic, alpha=0.5)


def missing_columns(observed: Tensor) -> Tensor:
    """Return int64 (m, o): the columns where rows `observed` (o, d) are not, then d as padding."""
    num_columns = observed.shape[1]
    columns = torch.arange(num_columns, device=observed.device).expand_as(observed)
    most = int((~observed).sum(dim=1).max()) if len(observed) else 0
    return torch.where(observed, num_columns, columns).sort(dim=1).values[:, :most].mT.contiguous()
