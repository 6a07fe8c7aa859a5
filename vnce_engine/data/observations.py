"""A table of numbers with missing cells, as values and a mask of what was observed."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from vnce_engine.data.clusters import Codes, renumbered
from vnce_engine.runtime.checks import as_array

# Rows that a fit needs at least: held-out rows of fewer say nothing.
MIN_ROWS = 6
# Rows whose passing results are in memory at once.
PART_ROWS = 16_384
# Entries of products of observed cells in memory at once.
_PRODUCTS = 2**22


@dataclass(frozen=True)
class Observations:
    """The observed cells of n rows and d columns.

    `values` is float64 (n, d) and holds 0 where nothing was observed; `observed` is bool (n, d).
    `clusters` is int64 (n,), codes as `clusters.py` has them; None where rows are independent.
    """

    values: Tensor
    observed: Tensor
    clusters: Tensor | None = None

    @classmethod
    def from_array(cls, X: ArrayLike, clusters: Codes | None = None) -> "Observations":
        """Read a two-dimensional array in which NaN means missing, and the cluster of each row.

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
        return cls(
            torch.from_numpy(np.where(observed, table, 0.0)),
            torch.from_numpy(observed),
            None if clusters is None else torch.from_numpy(clusters),
        )

    @property
    def num_rows(self) -> int:
        """The number of rows, n."""
        return self.values.shape[0]

    @property
    def num_columns(self) -> int:
        """The number of columns, d."""
        return self.values.shape[1]

    @property
    def num_clusters(self) -> int | None:
        """The number of clusters with something observed; None where rows are independent."""
        if self.clusters is None:
            return None
        return len(torch.unique(self.clusters[self.observed.any(dim=1)]))

    @property
    def shared_clusters(self) -> Tensor | None:
        """The clusters, int64 (n,); None where each row is one of its own."""
        clusters = self.clusters
        is_shared = clusters is not None and len(torch.unique(clusters)) < self.num_rows
        return clusters if is_shared else None

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

    def of_rows(self, rows: Tensor) -> "Observations":
        """Return the table of some rows alone, int64 (m,) or bool (n,)."""
        clusters = None if self.clusters is None else renumbered(self.clusters[rows])
        return Observations(self.values[rows], self.observed[rows], clusters)

    def reordered(self, rows: Tensor, columns: Tensor) -> "Observations":
        """Return the table with its rows, int64 (n,), and columns, int64 (d,), in another order."""
        table = self.of_rows(rows)
        return replace(table, values=table.values[:, columns], observed=table.observed[:, columns])

    def name_of_fit(self, choices: object, seed: int) -> str:
        """Return a text that no fit of another table, other choices or another seed has.

        `choices` are told apart by their `repr`.
        """
        running = hashlib.sha256(repr((self.values.shape, choices, seed)).encode())
        for cells in (self.values, self.observed, self.clusters):
            if cells is not None:
                running.update(cells.numpy(force=True).tobytes())
        return running.hexdigest()

    def to(self, device: torch.device) -> "Observations":
        """Return the table on a device."""
        clusters = None if self.clusters is None else self.clusters.to(device)
        return Observations(self.values.to(device), self.observed.to(device), clusters)

    def to_array(self) -> NDArray[np.float64]:
        """Return the table again, with NaN where nothing was observed."""
        return np.where(self.observed.numpy(), self.values.numpy(), np.nan)

    def num_pairwise(self) -> Tensor:
        """Return int64 (d, d): the number of rows in which both columns are observed."""
        indicator = self.observed.to(self.values.dtype)
        return (indicator.mT @ indicator).round().to(torch.int64)

    def num_pairwise_independent(self) -> Tensor:
        """Return int64 (d, d): how many clusters, or rows, have a row with both columns observed.

        Without clusters it is `num_pairwise`.
        """
        if self.clusters is None:
            return self.num_pairwise()
        kinds = torch.unique(
            torch.column_stack([self.clusters, self.observed.to(self.clusters.dtype)]), dim=0
        )
        # By cluster, as they are sorted by it.
        observed, sizes = (
            kinds[:, 1:].to(self.values.dtype),
            kinds[:, 0].unique(return_counts=True)[1],
        )
        of_kind = sizes.repeat_interleave(sizes)
        total = self.values.new_zeros(self.num_columns, self.num_columns)
        for size in sizes.unique().tolist():
            of_size = observed[of_kind == size].view(-1, size, self.num_columns)
            for part in of_size.split(max(1, _PRODUCTS // self.num_columns**2)):
                total += (part.mT @ part > 0).sum(dim=0)
        return total.to(torch.int64)
