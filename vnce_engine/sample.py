"""The contrastive sample: the data, and noise that carries the data's own missingness."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine import truncated_normal
from vnce_engine.blocks import BLOCK_WIDTH, Block
from vnce_engine.mean_field import ceiling, complete, log_ratios
from vnce_engine.noise import ProductTruncatedNormal, random_uniforms, sobol_stream
from vnce_engine.observations import Observations
from vnce_engine.penalty import PenaltyCurvature
from vnce_engine.progress import Progress
from vnce_engine.row_curvature import RowCurvature
from vnce_engine.shelf import Shelf
from vnce_engine.symmetric_products import WeightedSquares, quadratics

# Keeps stratified uniforms inside (0, 1) after rounding.
_EDGE = 2.0**-40


# Noise rows a data row in the Hessian, which needs fewer rows than the gradient.
_CURVATURE_NOISE_RATIO = 4
# q of held-out rows starts from far away.
_HELD_OUT_SWEEPS = 3


@dataclass(frozen=True)
class ContrastiveSample:
    """Blocks of data rows, and of `nu` noise rows for each of them, for theta to tell apart."""

    data: tuple[Block, ...]
    noise: tuple[Block, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, data first."""
        return self.data + self.noise

    @property
    def num_rows(self) -> int:
        """The number of data rows, n."""
        return sum(block.num_rows for block in self.data)

    @property
    def nu(self) -> float:
        """Noise rows a data row."""
        return sum(block.num_rows for block in self.noise) / self.num_rows

    def terms(self, augmented: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return the sum of the rows' terms at `augmented`, the draws fixed, and its gradient."""
        log_nu = math.log(self.nu)
        value = augmented.new_zeros(())
        squares = WeightedSquares(augmented)
        for block in self.blocks:
            progress.spend(2 * block.work)
            logits = log_ratios(block, augmented).flatten() - log_nu
            if block.is_noise:
                logits = -logits
            value += logsigmoid(logits).sum() / block.num_draws
            slopes = torch.sigmoid(-logits)  # the probability of the wrong class
            sign = 1 if block.is_noise else -1
            squares.add(block.flat_draws, slopes.mul_(0.5 * sign / block.num_draws))
        return value, squares.total()

    def curvature(
        self, augmented: Tensor, penalty: PenaltyCurvature, is_free: Tensor
    ) -> RowCurvature:
        """Return about the negative Hessian: one draw of each row, and only part of the noise."""
        log_nu = math.log(self.nu)
        rows = []
        for block, weight in self.curvature_blocks():
            draws = block.draws[:, 0]
            quadratic = quadratics(augmented, draws)
            log_ratio = torch.sub(block.log_ratio_offset[0], quadratic, alpha=0.5)
            class_probability = torch.sigmoid(log_ratio - log_nu)
            weights = class_probability * (1 - class_probability)
            rows.append((draws, weights * (0.25 * weight / self.num_rows)))
        return RowCurvature(rows, penalty, is_free)

    @property
    def num_draws(self) -> int:
        """Draws from q for each missing cell of a data row."""
        return max(block.num_draws for block in self.data)

    def data_rows(self) -> Tensor:
        """Return int64 (n,): which rows of the table these are."""
        return torch.cat([block.owner for block in self.data]).long()

    def wrong_probability(self, augmented: Tensor) -> Tensor:
        """Return the mean over draws (n,) of the probability of being noise, by data row."""
        logits = [log_ratios(block, augmented) - math.log(self.nu) for block in self.data]
        return torch.cat([torch.sigmoid(-each).mean(dim=0) for each in logits])

    def effective_sample_size(self, augmented: Tensor) -> float | None:
        """Return the mean of (sum w)² / (k sum w²), w = phi / q; None without missing cells."""
        shares = [_effective_share(block, augmented) for block in self.data if block.num_draws > 1]
        return float(torch.cat(shares).mean()) if shares else None

    def held_out_objective(self, augmented: Tensor, num_rows: int) -> Tensor:
        """Return each data row's share of the VNCE objective, control variates included.

        Shape (num_rows,): by data row of the table, 0 where it is not in this sample.
        """
        log_nu = math.log(self.nu)
        total = augmented.new_zeros(num_rows)
        for block in self.blocks:
            completion = complete(block, augmented, log_nu, _HELD_OUT_SWEEPS)
            log_ratio = log_ratios(block, augmented)
            logits = log_ratio - log_nu
            terms = logsigmoid(-logits if block.is_noise else logits).mean(dim=0)
            total.index_add_(0, block.owner, terms + completion.row_control(log_ratio))
        return total

    def curvature_blocks(self) -> list[tuple[Block, float]]:
        """Return blocks enough for a Hessian, with the number of rows that each row stands for.

        A Hessian needs fewer rows than a gradient: four noise rows a data row.
        """
        noise, count = [], 0
        for block in self.noise:
            if count >= _CURVATURE_NOISE_RATIO * self.num_rows:
                break
            noise.append(block)
            count += block.num_rows
        weight = self.nu * self.num_rows / count
        return [(block, 1.0) for block in self.data] + [(block, weight) for block in noise]

    @classmethod
    def joined(cls, samples: Sequence["ContrastiveSample"]) -> "ContrastiveSample":
        """Join samples of different rows; their blocks are shared, not copied."""
        return cls(
            tuple(block for sample in samples for block in sample.data),
            tuple(block for sample in samples for block in sample.noise),
        )

    def with_more_noise(self, blocks: Sequence[Block]) -> "ContrastiveSample":
        """Return the sample with further noise blocks for the same rows."""
        return ContrastiveSample(self.data, (*self.noise, *blocks))


def data_blocks(
    observations: Observations,
    rows: Tensor,
    noise: ProductTruncatedNormal,
    num_draws: int,
    generator: torch.Generator,
) -> list[Block]:
    """Return blocks of the given data rows, `num_draws` stratified draws for each missing cell.

    A block of rows without missing cells keeps one draw, as all would be alike.
    """
    width = max(1, BLOCK_WIDTH // num_draws)
    highest = ceiling(observations)
    shelf = Shelf()
    blocks = []
    for owner in rows.split(width):
        values, observed = observations.values[owner], observations.observed[owner]
        num_missing = int((~observed).sum())
        draws = num_draws if num_missing else 1
        uniforms = _stratified_uniforms(draws, num_missing, generator).to(values.device)
        block = _block(False, values, observed, uniforms, owner, noise, highest)
        blocks.append(block.laid_on(shelf))
    return blocks


def noise_blocks(
    observations: Observations,
    owners: Tensor,
    noise: ProductTruncatedNormal,
    points: Callable[[int], Tensor],
) -> list[Block]:
    """Return blocks of noise rows, one for each of `owners`, the data rows that lend their masks.

    `points(n)` gives the next (n, d) uniforms. A row's uniforms give its noise values where the
    mask is observed and drive its draws from q where it is not, so that evenly spread points stay
    evenly spread in the completed rows.
    """
    highest = ceiling(observations)
    shelf = Shelf()
    blocks = []
    for owner in owners.split(BLOCK_WIDTH):
        uniforms = points(len(owner))
        observed = observations.observed[owner]
        cells = uniforms.mT[~observed.mT].unsqueeze(0)
        values = noise.sample(uniforms)
        block = _block(True, values, observed, cells, owner, noise, highest)
        blocks.append(block.laid_on(shelf))
    return blocks


def noise_points(
    num_columns: int, draws: str, generator: torch.Generator, device: torch.device
) -> Callable[[int], Tensor]:
    """Return a source of uniforms (n, num_columns): a scrambled Sobol sequence or plain random."""
    if draws == "random":
        return lambda n: random_uniforms(n, num_columns, generator).to(device)
    seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
    stream = sobol_stream(num_columns, seed)
    return lambda n: stream(n).to(device)


def _stratified_uniforms(num_draws: int, num_cells: int, generator: torch.Generator) -> Tensor:
    """Return (num_draws, num_cells) uniforms, each cell with one in every equal part of (0, 1).

    Three draws stratified like this have far less spread than three independent ones.
    """
    shape = (num_draws, num_cells)
    strata = torch.rand(shape, generator=generator, dtype=torch.float64).argsort(dim=0)
    jitter = torch.rand(shape, generator=generator, dtype=torch.float64).clamp(_EDGE, 1 - _EDGE)
    return (strata + jitter) / num_draws


def _block(
    is_noise: bool,
    values: Tensor,
    observed: Tensor,
    uniforms: Tensor,
    owner: Tensor,
    noise: ProductTruncatedNormal,
    highest: Tensor,
) -> Block:
    """Return a block of `values` (b, d), its q at the noise's own means to begin with."""
    return Block.of_rows(
        values,
        observed,
        column_mean=truncated_normal.moments(noise.mu, noise.sigma)[0],
        ceiling=highest,
        is_noise=is_noise,
        uniforms=uniforms,
        owner=owner,
        log_noise=noise.log_prob(values, observed),
    )


def _effective_share(block: Block, augmented: Tensor) -> Tensor:
    """Return (sum w)² / (k sum w²) for the rows (r,) with missing cells, w = phi / q."""
    rows = torch.unique(block.column)
    log_weights = log_ratios(block, augmented)[:, rows]
    twice_sum = 2 * torch.logsumexp(log_weights, dim=0)
    sum_of_squares = torch.logsumexp(2 * log_weights, dim=0)
    return torch.exp(twice_sum - sum_of_squares) / block.num_draws
