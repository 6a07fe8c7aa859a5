"""Closed sets of words that a job's request may use; the worker matches them exhaustively."""

from enum import StrEnum
from typing import Literal


class JobKind(StrEnum):
    """What a job does."""

    ESTIMATION = "estimation"
    SIMULATION = "simulation"
    EXPERIMENT = "experiment"
    EXPERIMENT_PART = "experiment-part"
    SCORING = "scoring"
    BOOTSTRAP = "bootstrap"
    BOOTSTRAP_PART = "bootstrap-part"
    COMPARISON = "comparison"
    COMPARISON_PART = "comparison-part"
    DIFFERENCE = "difference"
    DIFFERENCE_PART = "difference-part"


# Kinds that no client asks for: jobs of others in parts make them.
PART_KINDS = (
    JobKind.EXPERIMENT_PART,
    JobKind.BOOTSTRAP_PART,
    JobKind.COMPARISON_PART,
    JobKind.DIFFERENCE_PART,
)


class ModelKind(StrEnum):
    """What can be assumed about data."""

    TRUNCATED_GAUSSIAN = "truncated-gaussian"
    GAUSSIAN = "gaussian"
    MIXTURE = "mixture"


class SimulatedGraph(StrEnum):
    """Graphs that data can be drawn from."""

    RING = "ring"
    HUB = "hub"


class CoverageGraph(StrEnum):
    """Graphs on which intervals are held against the truth; the engine's own names."""

    RING = "ring"
    HUB = "hub"
    RANDOM = "random"
    STAR = "star"


class ExperimentName(StrEnum):
    """Experiments of the paper, and of how sure its estimates are."""

    POSTERIOR_TOY = "posterior-toy"
    MIXTURE_EM = "mixture-em"
    MIXTURE_POPULATION = "mixture-population"
    GRAPH_RECOVERY = "graph-recovery"
    COVERAGE = "coverage"


class ExperimentScale(StrEnum):
    """How large an experiment is."""

    QUICK = "quick"
    FULL = "full"


class RecoveryEstimator(StrEnum):
    """Estimators that graph recovery compares; the engine's own names."""

    VNCE = "vnce"
    VNCE_RIDGE = "vnce-ridge"
    VNCE_L1 = "vnce-l1"
    VNCE_EBIC = "vnce-ebic"
    VNCE_BARRIER = "vnce-barrier"
    VNCE_PAPER = "vnce-paper"
    NCE_MEAN = "nce-mean"
    NCE_MEAN_PENALISED = "nce-mean-penalised"
    NCE_ZERO = "nce-zero"
    NCE_NOISE = "nce-noise"
    NCE_DROP = "nce-drop"
    MC_MLE = "mc-mle"
    MC_MLE_STEP_0_01 = "mc-mle-step-0.01"
    MC_MLE_STEP_1 = "mc-mle-step-1"
    MC_MLE_NATURAL = "mc-mle-natural"
    MC_MLE_PENALISED = "mc-mle-penalised"
    CD = "cd"
    PCD = "pcd"
    PSEUDO_LIKELIHOOD = "pseudo-likelihood"
    SCORE_MATCHING = "score-matching"
    SCORE_MATCHING_PENALISED = "score-matching-penalised"
    SCORE_MATCHING_MEAN = "score-matching-mean"
    GAUSSIAN_EM = "gaussian-em"
    GLASSO = "glasso"


class Transform(StrEnum):
    """What is applied to every observed cell before the fit; `auto` leaves it to held-out rows."""

    AUTO = "auto"
    NONE = "none"
    SQRT = "sqrt"
    CBRT = "cbrt"
    LOG1P = "log1p"
    RANK_NORMAL = "rank-normal"


# What takes negative values too.
WHOLE_LINE_TRANSFORMS = (Transform.AUTO, Transform.NONE, Transform.RANK_NORMAL)


class LinearChoice(StrEnum):
    """Whether the model has a linear term h'x."""

    AUTO = "auto"
    FREE = "free"
    ZERO = "zero"


class PenaltyKind(StrEnum):
    """Shape of the penalty on the precision matrix; `auto` leaves it to held-out rows."""

    AUTO = "auto"
    ADAPTIVE = "adaptive"
    RIDGE = "ridge"
    CENTRED_RIDGE = "centred-ridge"
    L1 = "l1"


# Those of estimators that have nothing to leave it to.
GivenPenaltyKind = Literal[
    PenaltyKind.ADAPTIVE, PenaltyKind.RIDGE, PenaltyKind.CENTRED_RIDGE, PenaltyKind.L1
]
PENALTY_SHAPES = (
    "Shape of the penalty. `adaptive` shrinks weak interactions more than strong ones, `ridge` all "
    "in proportion, `centred-ridge` towards their mean, `l1` all by the same amount, so that weak "
    "ones are exactly zero."
)


class FdrMethod(StrEnum):
    """How q-values bound the expected share of false edges among those found."""

    BENJAMINI_HOCHBERG = "benjamini-hochberg"
    BENJAMINI_YEKUTIELI = "benjamini-yekutieli"


class Selection(StrEnum):
    """How a penalty's strength is chosen."""

    HELD_OUT = "held-out"
    EBIC = "ebic"
    STABILITY = "stability"


class PenaltyChoice(StrEnum):
    """How a penalty's strength is found when no number is given."""

    AUTO = "auto"


class NoiseDraws(StrEnum):
    """How noise samples are drawn."""

    SOBOL = "sobol"
    RANDOM = "random"


class Preset(StrEnum):
    """Which recipe of variational noise-contrastive estimation is run."""

    DEFAULT = "default"
    PAPER = "paper"


class Imputation(StrEnum):
    """What plain noise-contrastive estimation does about missing cells."""

    MEAN = "mean"
    ZERO = "zero"
    NOISE = "noise"
    DROP = "drop"


class CensoredRule(StrEnum):
    """What is done about cells such as `<0.5` or `ND`, which no model uses yet."""

    REFUSE = "refuse"
    MISSING = "missing"


class LikelihoodMethod(StrEnum):
    """How the likelihood is climbed."""

    NATURAL = "natural"
    STOCHASTIC = "stochastic"


class Filling(StrEnum):
    """What estimators of complete rows do about missing cells."""

    GIBBS = "gibbs"
    MEAN = "mean"
    ZERO = "zero"
    DROP = "drop"


class ScoreWeight(StrEnum):
    """How far from zero a value counts in full in score matching."""

    CAPPED = "capped"
    SQUARE = "square"


class LassoChoice(StrEnum):
    """How the graphical lasso's strength is found when no number is given."""

    EBIC = "ebic"
    CV = "cv"


class MixtureForm(StrEnum):
    """Whether the mixture of two normals is normalised."""

    NORMALISED = "normalised"
    UNNORMALISED = "unnormalised"


class MixtureClimb(StrEnum):
    """How the bound of the mixture is raised."""

    JOINT = "joint"
    EXACT_EM = "exact-em"
