"""Closed sets of words that a job's request may use; the worker matches them exhaustively."""

from enum import StrEnum


class JobKind(StrEnum):
    """What a job does."""

    ESTIMATION = "estimation"
    SIMULATION = "simulation"
    EXPERIMENT = "experiment"
    EXPERIMENT_PART = "experiment-part"
    SCORING = "scoring"


class SimulatedGraph(StrEnum):
    """Graphs that data can be drawn from."""

    RING = "ring"
    HUB = "hub"


class ExperimentName(StrEnum):
    """Experiments of the paper."""

    POSTERIOR_TOY = "posterior-toy"
    MIXTURE_EM = "mixture-em"
    MIXTURE_POPULATION = "mixture-population"
    GRAPH_RECOVERY = "graph-recovery"


class ExperimentScale(StrEnum):
    """How large an experiment is."""

    QUICK = "quick"
    FULL = "full"


class RecoveryEstimator(StrEnum):
    """Estimators that graph recovery compares."""

    VNCE = "vnce"
    VNCE_PAPER = "vnce-paper"
    NCE_MEAN = "nce-mean"
    NCE_ZERO = "nce-zero"
    NCE_DROP = "nce-drop"


class Transform(StrEnum):
    """What is applied to every observed cell before the fit."""

    NONE = "none"
    SQRT = "sqrt"
    CBRT = "cbrt"
    LOG1P = "log1p"


class LinearChoice(StrEnum):
    """Whether the model has a linear term h'x."""

    AUTO = "auto"
    FREE = "free"
    ZERO = "zero"


class PenaltyKind(StrEnum):
    """Shape of the penalty on the precision matrix."""

    ADAPTIVE = "adaptive"
    RIDGE = "ridge"


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
