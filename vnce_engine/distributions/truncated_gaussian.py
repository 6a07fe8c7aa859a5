"""The truncated Gaussian on the positive orthant, and its form that is linear in theta."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TruncatedGaussian:
    """The unnormalised density phi(x) = exp(-½ xᵀKx + hᵀx - c) for x >= 0.

    `precision` is K (d, d), symmetric with a positive diagonal; `linear` is h (d,);
    `log_partition` is c, a scalar tensor that estimates the log of the integral of the rest.
    Source: Rhodes and Gutmann (2019), Section 5.1, with a linear term added (h = 0 there).
    """

    precision: Tensor
    linear: Tensor
    log_partition: Tensor

    def log_phi(self, x: Tensor) -> Tensor:
        """Return log phi of complete rows, shape (..., d) to (...)."""
        quadratic = ((x @ self.precision) * x).sum(dim=-1)
        return x @ self.linear - 0.5 * quadratic - self.log_partition

    def augmented(self) -> Tensor:
        """Return the symmetric matrix A (d + 1, d + 1) with log phi(x) = -½ (x, 1)ᵀ A (x, 1).

        A constant coordinate, always observed, carries h and c: A = [[K, -h], [-hᵀ, 2c]]. In A
        log phi is linear, so that one set of formulas serves all three parameters.
        """
        column = -self.linear.unsqueeze(1)
        corner = 2 * self.log_partition.reshape(1, 1)
        return torch.cat(
            [torch.cat([self.precision, column], dim=1), torch.cat([column.mT, corner], dim=1)]
        )

    @classmethod
    def from_augmented(cls, augmented: Tensor) -> "TruncatedGaussian":
        """Read K, h and c back from `augmented()`."""
        return cls(augmented[:-1, :-1], -augmented[:-1, -1], 0.5 * augmented[-1, -1])

    def with_columns_moved(self, shift: Tensor) -> "TruncatedGaussian":
        """Return the density of x + shift when this is the density of x, bounds left out."""
        moved = self.precision @ shift
        log_partition = self.log_partition + shift @ (self.linear + 0.5 * moved)
        return TruncatedGaussian(self.precision, self.linear + moved, log_partition)

    def with_columns_reordered(self, order: Tensor) -> "TruncatedGaussian":
        """Return the density of x[order], int64 (d,), when this is the density of x."""
        precision = self.precision[order][:, order].contiguous()
        return TruncatedGaussian(precision, self.linear[order], self.log_partition)

    def with_columns_scaled(self, scale: Tensor) -> "TruncatedGaussian":
        """Return the density of x * scale when this is the density of x; `scale` is (d,) > 0."""
        # One factor for each pair, so that K stays exactly symmetric.
        inverse = 1 / scale
        return TruncatedGaussian(
            self.precision * torch.outer(inverse, inverse),
            self.linear / scale,
            self.log_partition + torch.log(scale).sum(),
        )
