"""95 % confidence intervals of estimates that are about normal."""

import math
from dataclasses import dataclass

from scipy.stats import norm
from scipy.stats import t as student

CONFIDENCE = 0.95
# Standard errors on either side.
HALF_WIDTH = float(norm.isf((1 - CONFIDENCE) / 2))


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its 95 % confidence interval."""

    value: float
    lower: float
    upper: float

    @classmethod
    def of(
        cls, value: float, standard_error: float, num_clusters: int | None = None
    ) -> "Interval | None":
        """Return that of a normal estimate; None where it is not known, but NaN.

        By Student's t where the error is estimated from few clusters of rows.
        """
        if math.isnan(value) or math.isnan(standard_error):
            return None
        half = HALF_WIDTH
        if num_clusters is not None:
            half = float(student.isf((1 - CONFIDENCE) / 2, max(num_clusters - 1, 1)))
        width = half * standard_error
        return cls(value, value - width, value + width)
