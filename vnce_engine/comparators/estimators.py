"""The comparators of the truncated Gaussian, in one place."""

from vnce_engine.comparators.completed import (
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.comparators.contrastive_divergence import TruncatedGaussianCD
from vnce_engine.comparators.maximum_likelihood import TruncatedGaussianMLE

__all__ = [
    "TruncatedGaussianCD",
    "TruncatedGaussianMLE",
    "TruncatedGaussianPseudoLikelihood",
    "TruncatedGaussianScoreMatching",
]
