"""Graphical models from incomplete tables by variational noise-contrastive estimation."""

from vnce_engine.estimators.bootstrap import bootstrap
from vnce_engine.estimators.comparison import compare
from vnce_engine.estimators.complete_data import (
    TruncatedGaussianPseudoLikelihood,
    TruncatedGaussianScoreMatching,
)
from vnce_engine.estimators.contrastive_divergence import TruncatedGaussianCD
from vnce_engine.estimators.correlation_stability import correlation_stability
from vnce_engine.estimators.difference import difference, group_difference
from vnce_engine.estimators.gaussian import GaussianNCE, GaussianVNCE
from vnce_engine.estimators.gaussian_em import GaussianEM
from vnce_engine.estimators.gaussian_score_matching import GaussianScoreMatching
from vnce_engine.estimators.maximum_likelihood import TruncatedGaussianMLE
from vnce_engine.estimators.truncated_gaussian import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.runtime.reports import FitStatus, FitStep

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
    "bootstrap",
    "compare",
    "correlation_stability",
    "difference",
    "group_difference",
]
