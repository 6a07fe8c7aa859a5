"""Graphical models from incomplete tables by variational noise-contrastive estimation."""

from vnce_engine.comparators.estimators import (
    TruncatedGaussianCD,
    TruncatedGaussianMLE,
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.comparators.gaussian_estimator import GaussianEM
from vnce_engine.comparators.gaussian_score_matching import GaussianScoreMatching
from vnce_engine.estimators import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.gaussian import GaussianNCE, GaussianVNCE
from vnce_engine.result import FitStatus, FitStep

__all__ = [
    "FitStatus",
    "FitStep",
    "GaussianEM",
    "GaussianNCE",
    "GaussianScoreMatching",
    "GaussianVNCE",
    "TruncatedGaussianCD",
    "TruncatedGaussianMLE",
    "TruncatedGaussianNCE",
    "TruncatedGaussianPseudoLikelihood",
    "TruncatedGaussianScoreMatching",
    "TruncatedGaussianVNCE",
]
