"""The incomplete rows of a table, their missing cells drawn from a fitted truncated Gaussian."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from vnce_engine.contrastive.posterior import complete
from vnce_engine.contrastive.row_blocks import Block
from vnce_engine.data.observations import Observations

_ROWS = 256


def drawn_blocks(
    augmented: Tensor,
    observations: Observations,
    scale: Tensor,
    uniforms: Callable[[int], Tensor],
) -> Iterator[tuple[Tensor, Block]]:
    """Yield the incomplete rows in parts, as int64 (b,), and a block of k draws of each.

    Columns are divided by `scale` (d,), and `augmented` (d + 1, d + 1), K positive definite, is of
    such columns. `uniforms` are asked for (k, b, d), those of the next b rows.
    """
    num_missing = (~observations.observed).sum(dim=1)
    # Rows with as many missing cells together, as those of a block take as many steps.
    order = num_missing.argsort(stable=True)[(num_missing == 0).sum() :]
    for rows in order.split(_ROWS):
        block = Block.of_rows(
            observations.values[rows] / scale,
            observations.observed[rows],
            is_noise=False,
            uniforms=uniforms(len(rows)),
            owner=rows,
            log_noise=torch.zeros(len(rows), dtype=scale.dtype),
        )
        complete(block, augmented)
        yield rows, block


def same_for_every_row(uniforms: Tensor) -> Callable[[int], Tensor]:
    """Return uniforms (k, d) for as many rows as are asked for: draws of one depend on no other."""
    return lambda num_rows: uniforms.unsqueeze(1).expand(-1, num_rows, -1)
