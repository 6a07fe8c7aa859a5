"""A column's map to the quantiles of a normal, or of half of one, by the ranks of its cells.

Between knots the map is a monotone rational quadratic; beyond them its slope falls as 1 / distance,
so that values far out have finite scores. Map, slope and inverse are closed forms.
Source: Gregory and Delbourgo (1982), "Piecewise rational quadratic interpolation to monotonic
data", IMA J. Numer. Anal. 2.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from vnce_engine.distributions.cell_means import CellMeans

FloatArray = NDArray[np.float64]

# Of n observed cells so many times n^(1/3) knots: more follow the ranks more closely, and new rows
# less well.
_KNOTS = 1.0
_LEAST_KNOTS, _MOST_KNOTS = 5, 40
# Cells beyond the outer knots, on either side, and their share at most.
_CELLS_BEYOND, _MOST_BEYOND = 5.0, 0.1


class _Pieces(NamedTuple):
    """Of each value, the piece of the map that it is in; the outer ones if beyond all."""

    x: FloatArray
    y: FloatArray
    """Where the piece begins."""
    run: FloatArray
    rise: FloatArray
    """How far it goes on from there."""
    left: FloatArray
    right: FloatArray
    """The map's slopes at its ends, relative to rise over run."""

    @property
    def bend(self) -> FloatArray:
        """What bends the piece away from a straight line."""
        return self.left + self.right - 2


@dataclass(frozen=True)
class RankNormal:
    """A smooth, strictly increasing map of one column."""

    x: FloatArray
    """(m,): knots, increasing; m is 2 or more."""
    y: FloatArray
    """(m,): their scores, increasing."""
    begins_at_zero: bool
    """Whether values and scores do, these being quantiles of half a normal."""

    @classmethod
    def fit(cls, cells: FloatArray, *, is_half: bool) -> "RankNormal":
        """Return the map of the observed `cells` (n,), of which two differ.

        `is_half` maps [0, inf) to the quantiles of |z|, z standard normal, else all numbers to
        those of z. Equal cells share a rank, the middle of theirs.
        """
        values, counts = np.unique(cells, return_counts=True)
        share = (np.cumsum(counts) - counts / 2) / len(cells)
        if is_half and values[0] == 0:
            values, share = values[1:], share[1:]
        number = int(np.clip(_KNOTS * np.cbrt(len(cells)), _LEAST_KNOTS, _MOST_KNOTS))
        if len(values) > number:
            beyond = min(_CELLS_BEYOND / len(cells), _MOST_BEYOND)
            ends = np.clip([beyond, 1 - beyond], share[0], share[-1])
            low, high = _scores(ends, is_half=is_half)
            at = _shares(np.linspace(low, high, number), is_half=is_half)
            if is_half:
                # Scores near 0 are many cells, whose values may be of any order of magnitude.
                doubled = ends[0] * 2 ** np.arange(1, math.log2(at[1] / ends[0]))
                at = np.sort(np.append(at, doubled))
            values, first = np.unique(np.interp(at, share, values), return_index=True)
            share = at[first]
        x, y = values, _scores(share, is_half=is_half)
        if is_half:
            x, y = np.append(0.0, x), np.append(0.0, y)
        return cls(x, y, is_half)

    def forward(self, x: ArrayLike) -> FloatArray:
        """Return the scores of values; NaN stays NaN. `ValueError` below 0 of half a normal."""
        x = self._checked(x)
        piece = self._pieces(np.searchsorted(self.x, x))
        t = (x - piece.x) / piece.run
        t, beyond = np.clip(t, 0, 1), np.where(t < 0, t, np.maximum(t - 1, 0))
        both = t * (1 - t)
        inside = (t**2 + piece.left * both) / (1 + piece.bend * both)
        outside = np.copysign(np.log1p(np.abs(beyond)), beyond)
        scores: FloatArray = piece.y + piece.rise * (inside + outside)
        return scores

    def inverse(self, y: ArrayLike) -> FloatArray:
        """Return the values that have the scores `y`; NaN stays NaN."""
        y = self._checked(y)
        piece = self._pieces(np.searchsorted(self.y, y))
        r = (y - piece.y) / piece.rise
        r, beyond = np.clip(r, 0, 1), np.where(r < 0, r, np.maximum(r - 1, 0))
        # The root of (t² + left t (1 - t)) = r (1 + bend t (1 - t)) in [0, 1].
        linear = piece.left - r * piece.bend
        root = np.sqrt(linear**2 + 4 * r * (1 - linear))
        inside = 2 * r / (linear + root)
        outside = np.copysign(np.expm1(np.abs(beyond)), beyond)
        values: FloatArray = piece.x + piece.run * (inside + outside)
        return values

    def log_slope(self, x: ArrayLike) -> FloatArray:
        """Return the log of the map's slope at x; NaN stays NaN."""
        x = self._checked(x)
        piece = self._pieces(np.searchsorted(self.x, x))
        t = (x - piece.x) / piece.run
        t, beyond = np.clip(t, 0, 1), np.where(t < 0, -t, np.maximum(t - 1, 0))
        both = t * (1 - t)
        inside = (piece.right * t**2 + 2 * both + piece.left * (1 - t) ** 2) / (
            1 + piece.bend * both
        ) ** 2
        log_slope: FloatArray = np.log(piece.rise / piece.run * inside / (1 + beyond))
        return log_slope

    def mean_before(self, cells: CellMeans) -> FloatArray:
        """Return the mean of the inverse of each cell: what it is expected to be on X's scale."""
        return cells.expectation(lambda y: torch.from_numpy(self.inverse(y.numpy()))).numpy()

    def _checked(self, values: ArrayLike) -> FloatArray:
        values = np.asarray(values, dtype=np.float64)
        negative = values < 0
        if self.begins_at_zero and negative.any():
            smallest = values[negative].min()
            raise ValueError(
                "The transform 'rank-normal' of a truncated model needs values of at least 0, got "
                f"{smallest}"
            )
        return values

    def _pieces(self, knot: NDArray[np.intp]) -> _Pieces:
        """Return the pieces that end at some knots, or the first or last if there is none."""
        slope = _slopes(self.x, self.y)
        end = np.clip(knot, 1, len(self.x) - 1)
        run, rise = self.x[end] - self.x[end - 1], self.y[end] - self.y[end - 1]
        secant = rise / run
        return _Pieces(
            self.x[end - 1],
            self.y[end - 1],
            run,
            rise,
            slope[end - 1] / secant,
            slope[end] / secant,
        )


def _slopes(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return a slope at each knot: the secants' geometric mean, the nearer knot's counting more."""
    run = np.diff(x)
    log_secant = np.log(np.diff(y) / run)
    inner = (run[1:] * log_secant[:-1] + run[:-1] * log_secant[1:]) / (run[1:] + run[:-1])
    slopes: FloatArray = np.exp(np.concatenate([log_secant[:1], inner, log_secant[-1:]]))
    return slopes


def _scores(share: FloatArray, *, is_half: bool) -> FloatArray:
    scores: FloatArray = ndtri((1 + share) / 2 if is_half else share)
    return scores


def _shares(score: FloatArray, *, is_half: bool) -> FloatArray:
    shares: FloatArray = 2 * ndtr(score) - 1 if is_half else ndtr(score)
    return shares
