"""A log density that is quadratic in x: (K, h, c), as one matrix A, and as one vector theta."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_LOG_TAU = math.log(2 * math.pi)


@dataclass(frozen=True)
class QuadraticModel:
    """The unnormalised density phi(x) = exp(-½ xᵀKx + hᵀx - c), for x in R^d or for x >= 0.

    `precision` is K (d, d), symmetric with a positive diagonal; `linear` is h (d,);
    `log_partition` is c, a scalar tensor that estimates the log of the integral of the rest. On
    R^d it is a Gaussian, for x >= 0 a truncated one.
    Source: Rhodes and Gutmann (2019), Section 5.1, with a linear term added (h = 0 there).
    """

    precision: Tensor
    linear: Tensor
    log_partition: Tensor

    @classmethod
    def normal(cls, mean: Tensor, precision: Tensor) -> "QuadraticModel":
        """Return N(mean, precision⁻¹) on R^d, whose c is the log of its integral."""
        linear = precision @ mean
        log_partition = 0.5 * (
            linear @ mean + len(mean) * _LOG_TAU - torch.linalg.slogdet(precision).logabsdet
        )
        return cls(precision, linear, log_partition)

    def normalised(self, scale: float = 1.0) -> "QuadraticModel":
        """Return the density on R^d of that shape, its standard deviations times `scale`.

        Its c is the log of the integral, whatever it is here; K is positive definite.
        """
        return QuadraticModel.normal(self.mean(), self.precision / scale**2)

    def mean(self) -> Tensor:
        """Return the mean K⁻¹ h (d,) on R^d; K is positive definite."""
        factor = torch.linalg.cholesky(self.precision)
        return torch.cholesky_solve(self.linear.unsqueeze(1), factor).squeeze(1)

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
    def from_augmented(cls, augmented: Tensor) -> "QuadraticModel":
        """Read K, h and c back from `augmented()`."""
        return cls(augmented[:-1, :-1], -augmented[:-1, -1], 0.5 * augmented[-1, -1])

    def packed(self) -> Tensor:
        """Return theta (p,): the lower triangle of K row by row, then h, then c."""
        rows, columns = _lower_triangle(len(self.linear), self.linear.device)
        triangle = self.precision[rows, columns]
        return torch.cat([triangle, self.linear, self.log_partition.reshape(1)])

    @classmethod
    def unpack(cls, theta: Tensor, d: int) -> "QuadraticModel":
        """Read K, h and c of d columns back from `packed()`."""
        rows, columns = _lower_triangle(d, theta.device)
        triangle, linear, log_partition = theta.split([len(rows), d, 1])
        index = torch.zeros(d, d, dtype=torch.int64, device=theta.device)
        index[rows, columns] = index[columns, rows] = torch.arange(len(rows), device=theta.device)
        return cls(triangle[index], linear, log_partition.squeeze(0))

    def with_columns_moved(self, shift: Tensor) -> "QuadraticModel":
        """Return the density of x + shift when this is the density of x, bounds left out."""
        moved = self.precision @ shift
        log_partition = self.log_partition + shift @ (self.linear + 0.5 * moved)
        return QuadraticModel(self.precision, self.linear + moved, log_partition)

    def with_columns_reordered(self, order: Tensor) -> "QuadraticModel":
        """Return the density of x[order], int64 (d,), when this is the density of x."""
        precision = self.precision[order][:, order].contiguous()
        return QuadraticModel(precision, self.linear[order], self.log_partition)

    def with_columns_scaled(self, scale: Tensor) -> "QuadraticModel":
        """Return the density of x * scale when this is the density of x; `scale` is (d,) > 0."""
        # One factor for each pair, so that K stays exactly symmetric.
        inverse = 1 / scale
        return QuadraticModel(
            self.precision * torch.outer(inverse, inverse),
            self.linear / scale,
            self.log_partition + torch.log(scale).sum(),
        )


def num_parameters(num_columns: int, num_edges: int | None = None) -> int:
    """Return the number of entries of K, h and c; of a graph's if its edges are counted."""
    if num_edges is None:
        num_edges = num_columns * (num_columns - 1) // 2
    return num_edges + 2 * num_columns + 1


def _lower_triangle(d: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return row and column numbers of the lower triangle with its diagonal, row by row."""
    rows, columns = torch.tril_indices(d, d, device=device)
    return rows, columns
