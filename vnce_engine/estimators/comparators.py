"""The comparators of the truncated Gaussian, in one place."""

from vnce_engine.estimators.complete_data import (
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.estimators.contrastive_divergence import TruncatedGaussianCD
from vnce_engine.estimators.maximum_likelihood import TruncatedGaussianMLE

__all__ = [
    "TruncatedGaussianCD",
    "TruncatedGaussianMLE",
    "TruncatedGaussianPseudoLikelihood",
    "TruncatedGaussianScoreMatching",
]
