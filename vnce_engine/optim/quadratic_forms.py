"""log phi of many rows at once, differentiated by one more product over them.

Automatic differentiation of (A t) * t goes over several more arrays as long as the rows: with
55,000 of 20 columns value and gradient took twice as long.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def quadratic_forms(augmented: Tensor, columns: Tensor) -> Tensor:
    """Return -½ tᵀ A t (b,) of every column t of (d + 1, b), for a symmetric A (d + 1, d + 1).

    With the A of `QuadraticModel.augmented` and columns that end in 1 it is log phi.
    """
    return _apply(augmented, columns)


class _QuadraticForms(torch.autograd.Function):
    # `ctx` is of a class that torch makes for each Function.

    @staticmethod
    def forward(ctx: Any, augmented: Tensor, columns: Tensor) -> Tensor:
        ctx.save_for_backward(augmented, columns)
        return (augmented @ columns).mul_(columns).sum(dim=0).mul_(-0.5)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, Tensor | None]:
        augmented, columns = ctx.saved_tensors
        by_augmented, by_columns = ctx.needs_input_grad
        weighted = columns * slopes[0]
        return (
            -0.5 * weighted @ columns.mT if by_augmented else None,
            -(augmented @ weighted) if by_columns else None,
        )


# Torch declares no types for it.
_apply: Callable[[Tensor, Tensor], Tensor] = _QuadraticForms.apply
