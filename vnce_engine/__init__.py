"""Graphical models from incomplete tables by variational noise-contrastive estimation."""

from vnce_engine.estimators import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.gaussian import GaussianNCE, GaussianVNCE
from vnce_engine.result import FitStatus, FitStep

__all__ = [
    "FitStatus",
    "FitStep",
    "GaussianNCE",
    "GaussianVNCE",
    "TruncatedGaussianNCE",
    "TruncatedGaussianVNCE",
]
