"""Columns so far above zero that the bound there means nothing, brought nearer for a fit.

The values of xᵀKx are about (mean / standard deviation)², so that a column ten million standard
deviations above zero leaves no digits of what rows differ in. With h free, x - s has the same
density as x, K the same, but for the bound, which is then at -s; and where the lowest value of a
column lies many standard deviations above zero, no probability is anywhere near either.
"""

from dataclasses import replace

import torch
from torch import Tensor

from vnce_engine.data.observations import Observations

# Standard deviations of a column's lowest value above zero from which the column is moved, and
# after which: the tail beyond these has a probability of 1e-350.
_FAR, _NEAR = 1000.0, 40.0


def lowered(observations: Observations) -> tuple[Observations, Tensor | None]:
    """Return the table with far columns moved down, and by how much (d,); None if none is far."""
    values, observed = observations.values, observations.observed
    spread, lowest = observations.moments()[1].sqrt(), observations.lowest()
    is_far = (lowest > _FAR * spread) & (spread > 0) & lowest.isfinite()
    if not is_far.any():
        return observations, None
    shift = torch.where(is_far, lowest - _NEAR * spread, 0.0)
    return replace(observations, values=torch.where(observed, values - shift, 0.0)), shift
