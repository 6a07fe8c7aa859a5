"""The contrastive sample: the data, and noise that carries the data's own missingness."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vnce_engine.contrastive.noise import CopulaNoise
from vnce_engine.contrastive.objective import (
    CURVATURE_NOISE_RATIO,
    curvature_weights,
    data_probability,
    log_probability,
    noise_probability,
    row_terms,
)
from vnce_engine.contrastive.posterior import complete, expected_rows
from vnce_engine.contrastive.row_blocks import BLOCK_WIDTH, Block
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.information import statistics, to_slope
from vnce_engine.distributions.uniforms import open_uniforms, sobol_stream
from vnce_engine.optim.row_curvature import RowCurvature
from vnce_engine.optim.symmetric_products import WeightedSquares, quadratics
from vnce_engine.penalties.penalty import PenaltyCurvature
from vnce_engine.runtime.arena import Arena
from vnce_engine.runtime.progress import Progress

# Keeps stratified uniforms inside (0, 1) after rounding.
_EDGE = 2.0**-40


@dataclass(frozen=True)
class ContrastiveSample:
    """Blocks of data rows, and of `nu` noise rows for each of them, for theta to tell apart."""

    data: tuple[Block, ...]
    noise: tuple[Block, ...]
    nu: float
    """Noise rows a data row, also in a part that has rows of one class alone."""
    curvature_at_means: bool = False
    """Whether the Hessian has missing cells at their mean, as that of the rows' marginal densities
    has, for rows that others are held out of: with single draws it is larger, and the step that
    leaves those out too short."""

    @classmethod
    def of(cls, data: Iterable[Block], noise: Iterable[Block]) -> "ContrastiveSample":
        """Return the sample of all data rows and all noise rows."""
        data, noise = tuple(data), tuple(noise)
        num_rows, num_noise_rows = (sum(b.num_rows for b in blocks) for blocks in (data, noise))
        return cls(data, noise, num_noise_rows / num_rows)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, data first."""
        return self.data + self.noise

    @property
    def num_rows(self) -> int:
        """The number of data rows, n."""
        return sum(block.num_rows for block in self.data)

    def terms(self, augmented: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return the sum of the rows' terms at `augmented`, the draws fixed, and its gradient."""
        value = augmented.new_zeros(())
        squares = WeightedSquares(augmented)
        for block in self.blocks:
            progress.spend(2 * block.work)
            terms = row_terms(block.log_ratios(augmented).flatten(), self.nu, block.sign)
            weight = block.draw_weight.flatten()
            value += terms.value @ weight
            # The slope of log phi in A is -½ aaᵀ.
            squares.add(block.flat_draws, terms.slope.mul_(weight).mul_(-0.5))
        return value, squares.total()

    def curvature(
        self, augmented: Tensor, penalty: PenaltyCurvature, is_free: Tensor
    ) -> RowCurvature:
        """Return about the negative Hessian: one draw of each row, and only part of the noise."""
        rows = []
        for block, count, weight in self.curvature_rows():
            draws = block.draws[:, 0, :count]
            quadratic = quadratics(augmented, draws)
            log_ratio = torch.sub(block.log_ratio_offset[0, :count], quadratic, alpha=0.5)
            weights = curvature_weights(log_ratio, self.nu)
            if self.curvature_at_means:
                draws = _mean_rows(block, augmented)[:, :count]
            rows.append((draws, weights * (0.25 * weight / self.num_rows)))
        return RowCurvature(rows, penalty, is_free)

    @property
    def num_draws(self) -> int:
        """Draws from q for each missing cell of a data row."""
        return max(block.num_draws for block in self.data)

    def mean(self) -> Tensor:
        """Return the mean (d + 1,) of the completed data rows; its last entry is 1."""
        sums = [block.flat_draws @ block.draw_weight.flatten() for block in self.data]
        return torch.stack(sums).sum(dim=0) / self.num_rows

    @property
    def chance(self) -> float:
        """None but in the scores: each data row's has its noise rows'."""
        return 0.0

    def data_rows(self) -> Tensor:
        """Return int64 (n,): which rows of the table these are."""
        return torch.cat([block.owner for block in self.data]).long()

    def wrong_probability(self, augmented: Tensor) -> Tensor:
        """Return the mean over draws (n,) of the probability of being noise, by data row."""
        probabilities = [
            noise_probability(block.log_ratios(augmented), self.nu) * block.draw_weight
            for block in self.data
        ]
        return torch.cat([of_draws.sum(dim=0) for of_draws in probabilities])

    def effective_sample_size(self) -> float | None:
        """Return the mean of (sum w)² / (k sum w²), w = phi / q; None without missing cells."""
        shares = [_effective_share(block) for block in self.data if block.num_draws > 1]
        return float(torch.cat(shares).mean()) if shares else None

    def redraw(self, augmented: Tensor) -> None:
        """Draw missing cells anew under `augmented`, in place of the draws so far."""
        for block in self.blocks:
            complete(block, augmented)

    def objective_by_row(self, augmented: Tensor, num_rows: int) -> Tensor:
        """Return each data row's share of J_NCE with its noise rows', the draws as they are.

        Shape (num_rows,): by data row of the table, 0 where it is not in this sample.
        """
        total = augmented.new_zeros(num_rows)
        for block in self.blocks:
            # A row's phi(x) is the mean weight of its draws, also where theta is another.
            log_ratio = (block.log_ratios(augmented) + block.draw_weight.log()).logsumexp(dim=0)
            total.index_add_(0, block.owner, log_probability(log_ratio, self.nu, block.sign))
        return total

    def information(self, augmented: Tensor) -> Tensor:
        """Return sum h (1 - h) T Tᵀ (p, p), h the probability of being data; see `information.py`.

        Of noise rows it takes four a data row, and for T the statistics of about their mean row.
        """
        size = len(augmented) * (len(augmented) + 1) // 2
        total = augmented.new_zeros(size, size)
        for block, count, weight in self.curvature_rows():
            of_draws = curvature_weights(block.log_ratios(augmented)[:, :count], self.nu)
            weights = (of_draws * block.draw_weight[:, :count]).sum(dim=0)
            if block.is_noise:
                means = statistics(expected_rows(block, augmented)[:, :count])
            else:
                means = block.mean_statistics()
            total.addmm_(means * weights, means.mT, alpha=weight)
        return total

    def noise_scores(self, augmented: Tensor) -> Tensor:
        """Return sum s sᵀ (p, p) of the noise rows' scores s = -h T, T of their draws."""
        size = len(augmented) * (len(augmented) + 1) // 2
        total = augmented.new_zeros(size, size)
        for block, count, weight in self.curvature_rows():
            if block.is_noise:
                probability = data_probability(block.log_ratios(augmented)[0, :count], self.nu)
                scores = statistics(block.flat_draws[:, :count]) * probability
                total.addmm_(scores, scores.mT, alpha=weight)
        return total

    def scores(self, augmented: Tensor, is_kept: Tensor) -> Tensor:
        """Return each kept data row's score with its noise rows' (r, p), in the table's order.

        Summed over rows they are the slope of the terms. `is_kept` is by row of the table.
        """
        position = is_kept.cumsum(dim=0) - 1
        total = augmented.new_zeros(int(is_kept.sum()), *augmented.shape)
        for block in self.select(is_kept).blocks:
            terms = row_terms(block.log_ratios(augmented), self.nu, block.sign)
            lines = block.by_owner
            weighted = lines * (-0.5 * terms.slope * block.draw_weight).view(lines.shape[1:])
            squares = weighted.permute(2, 0, 1) @ lines.permute(2, 1, 0)
            owner = block.owner[: block.num_owners].long()
            total.index_add_(0, position[owner], squares)
        return to_slope(total)

    def select(self, is_kept: Tensor) -> "ContrastiveSample":
        """Return a copy of some data rows, bool by row of the table, and their noise rows."""
        noise = _of_owners(self.noise, is_kept)
        return replace(self.data_part(is_kept), noise=noise, curvature_at_means=True)

    def data_part(self, is_kept: Tensor) -> "ContrastiveSample":
        """Return a copy of some data rows, bool by row of the table, without noise rows."""
        return ContrastiveSample(_of_owners(self.data, is_kept), (), self.nu)

    def noise_part(self) -> "ContrastiveSample":
        """Return the noise rows alone, sharing memory."""
        return replace(self, data=())

    def curvature_rows(self) -> list[tuple[Block, int, float]]:
        """Return what is enough for a Hessian of each block: so many rows, each worth so many.

        Four noise rows a data row, of all owners.
        """
        parts = [(block, block.num_rows, 1.0) for block in self.data]
        for block in self.noise:
            copies = block.num_rows // block.num_owners
            kept = min(copies, CURVATURE_NOISE_RATIO)
            parts.append((block, kept * block.num_owners, copies / kept))
        return parts


def data_blocks(
    observations: Observations,
    rows: Tensor,
    noise: CopulaNoise | None,
    num_draws: int,
    generator: torch.Generator,
) -> list[Block]:
    """Return blocks of the given data rows, `num_draws` stratified draws for each missing cell.

    A block of rows without missing cells keeps one draw, as all would be alike. Without `noise`
    rows have draws alone, and no log ratios.
    """
    arena = Arena()
    blocks = []
    for owner in _alike(observations, rows).split(max(1, BLOCK_WIDTH // num_draws)):
        values, observed = observations.values[owner], observations.observed[owner]
        draws = 1 if observed.all() else num_draws
        block = Block.of_rows(
            values,
            observed,
            is_noise=False,
            uniforms=_stratified_uniforms(draws, values.shape, generator).to(values.device),
            owner=owner,
            log_noise=(
                values.new_zeros(len(values)) if noise is None else noise.log_prob(values, observed)
            ),
        )
        blocks.append(block.laid_on(arena))
    return blocks


def noise_blocks(
    observations: Observations,
    rows: Tensor,
    noise_ratio: int,
    noise: CopulaNoise,
    points: Callable[[int], Tensor],
) -> list[Block]:
    """Return blocks of noise rows, `noise_ratio` for each data row, which lends its mask.

    `points(n)` gives the next (n, d) uniforms. A row's uniforms give its noise values where the
    mask is observed and drive its draws where it is not, so that evenly spread points stay evenly
    spread in the completed rows.
    """
    arena = Arena()
    blocks = []
    for owner in _alike(observations, rows).split(max(1, BLOCK_WIDTH // noise_ratio)):
        observed = observations.observed[owner]
        uniforms = points(noise_ratio * len(owner)).view(noise_ratio, len(owner), -1)
        values, log_noise = noise.draw(uniforms, observed)
        block = Block.of_rows(
            values.flatten(0, 1),
            observed,
            is_noise=True,
            uniforms=uniforms,
            owner=owner.repeat(noise_ratio),
            log_noise=log_noise.flatten(),
        )
        blocks.append(block.laid_on(arena))
    return blocks


def _mean_rows(block: Block, augmented: Tensor) -> Tensor:
    """Return (d + 1, b): the block's rows, missing cells at about their posterior mean."""
    if block.is_noise:
        return expected_rows(block, augmented)
    return (block.draws * block.draw_weight).sum(dim=1)


def _of_owners(blocks: Sequence[Block], is_kept: Tensor) -> tuple[Block, ...]:
    """Return copies of the blocks with some owners alone, bool by row of the table."""
    return tuple(
        block.of_owners(is_kept[block.owner[: block.num_owners].long()])
        for block in blocks
        if is_kept[block.owner.long()].any()
    )


def _alike(observations: Observations, rows: Tensor) -> Tensor:
    """Return the rows, those with as many missing cells together.

    An E-step takes every row of a block through as many steps as the one with most of them needs.
    """
    num_missing = (~observations.observed[rows]).sum(dim=1)
    return rows[torch.argsort(num_missing, stable=True)]


def noise_points(
    num_columns: int, draws: str, generator: torch.Generator, device: torch.device
) -> Callable[[int], Tensor]:
    """Return a source of uniforms (n, num_columns): a scrambled Sobol sequence or plain random.

    Points are shuffled within each call. In their own order every other one lies in the same half
    of every coordinate, so that noise of a few data rows alone would be anything but even.
    """
    if draws == "random":
        return lambda n: open_uniforms((n, num_columns), generator).to(device)
    seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
    stream, shuffling = sobol_stream(num_columns, seed), torch.Generator().manual_seed(seed)
    return lambda n: stream(n)[torch.randperm(n, generator=shuffling)].to(device)


def _stratified_uniforms(num_draws: int, shape: torch.Size, generator: torch.Generator) -> Tensor:
    """Return (num_draws, *shape) uniforms, each cell with one in every equal part of (0, 1).

    Few draws stratified like this have far less spread than independent ones.
    """
    whole = (num_draws, *shape)
    strata = torch.rand(whole, generator=generator, dtype=torch.float64).argsort(dim=0)
    jitter = torch.rand(whole, generator=generator, dtype=torch.float64).clamp(_EDGE, 1 - _EDGE)
    return (strata + jitter) / num_draws


def _effective_share(block: Block) -> Tensor:
    """Return (sum w)² / (k sum w²) for the rows (r,) with missing cells."""
    weights = block.draw_weight[:, block.missing[0].long() < len(block.draws) - 1]
    return 1 / (block.num_draws * weights.square().sum(dim=0))
