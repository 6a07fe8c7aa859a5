"""A table of numbers with missing cells, as values and a mask of what was observed."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from vnce_engine.runtime.checks import as_array

# Rows that a fit needs at least: held-out rows of fewer say nothing.
MIN_ROWS = 6
# Rows whose passing results are in memory at once.
PART_ROWS = 16_384


@dataclass(frozen=True)
class Observations:
    """The observed cells of n rows and d columns.

    `values` is float64 (n, d) and holds 0 where nothing was observed; `observed` is bool (n, d).
    """

    values: Tensor
    observed: Tensor

    @classmethod
    def from_array(cls, X: ArrayLike) -> "Observations":
        """Read a two-dimensional array in which NaN means missing.

        Raises `ValueError` if `X` is not two-dimensional or holds an infinity, naming its cell.
        """
        table = as_array("X", X)
        if table.ndim != 2:
            raise ValueError(f"`X` must have two dimensions, got {table.ndim}")
        infinite = np.argwhere(np.isinf(table))
        if infinite.size:
            row, column = infinite[0]
            raise ValueError(
                "`X` must be finite or NaN (missing), got "
                f"{table[row, column]} in row {row}, column {column} (counted from 0)"
            )
        observed = ~np.isnan(table)
        return cls(torch.from_numpy(np.where(observed, table, 0.0)), torch.from_numpy(observed))

    @property
    def num_rows(self) -> int:
        """The number of rows, n."""
        return self.values.shape[0]

    @property
    def num_columns(self) -> int:
        """The number of columns, d."""
        return self.values.shape[1]

    def counts(self) -> Tensor:
        """Return int64 (d,): the number of observed cells of each column."""
        return torch.stack([part.sum(dim=0) for part in self.observed.split(PART_ROWS)]).sum(dim=0)

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return mean and variance (d,) of each column's observed cells; 0 where there are none."""
        counts = self.counts().clamp(min=1)
        mean = self.values.sum(dim=0) / counts
        squares = [
            torch.where(observed, values - mean, 0.0).square().sum(dim=0)
            for values, observed in self._parts()
        ]
        return mean, torch.stack(squares).sum(dim=0) / counts

    def lowest(self) -> Tensor:
        """Return the lowest observed value (d,) of each column; infinity where there is none."""
        parts = [
            torch.where(observed, values, torch.inf).min(dim=0).values
            for values, observed in self._parts()
        ]
        return torch.stack(parts).min(dim=0).values

    def _parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self.values.split(PART_ROWS), self.observed.split(PART_ROWS), strict=True)

    def reordered(self, rows: Tensor, columns: Tensor) -> "Observations":
        """Return the table with its rows, int64 (n,), and columns, int64 (d,), in another order."""
        return Observations(self.values[rows][:, columns], self.observed[rows][:, columns])

    def name_of_fit(self, choices: object, seed: int) -> str:
        """Return a text that no fit of another table, other choices or another seed has.

        `choices` are told apart by their `repr`.
        """
        running = hashlib.sha256(repr((self.values.shape, choices, seed)).encode())
        for cells in (self.values, self.observed):
            running.update(cells.numpy(force=True).tobytes())
        return running.hexdigest()

    def to(self, device: torch.device) -> "Observations":
        """Return the table on a device."""
        return Observations(self.values.to(device), self.observed.to(device))

    def to_array(self) -> NDArray[np.float64]:
        """Return the table again, with NaN where nothing was observed."""
        return np.where(self.observed.numpy(), self.values.numpy(), np.nan)

    def num_pairwise(self) -> Tensor:
        """Return int64 (d, d): the number of rows in which both columns are observed."""
        indicator = self.observed.to(self.values.dtype)
        return (indicator.mT @ indicator).round().to(torch.int64)
