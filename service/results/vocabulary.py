"""Closed sets of words that results use."""

from enum import StrEnum


class FitStatus(StrEnum):
    """How a fit ended; a job that ran to its end has succeeded whatever this says."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "max_iterations"
    NON_FINITE = "non_finite"


class EdgeRule(StrEnum):
    """By what pairs are selected as the edges of a network."""

    FALSE_DISCOVERY_RATE = "false-discovery-rate"
    THRESHOLD = "threshold"


class Verdict(StrEnum):
    """What a table says about an edge."""

    PRESENT = "present"
    ABSENT = "absent"
    UNDECIDED = "undecided"


class EdgeScore(StrEnum):
    """What pairs are ranked by when they are compared with a true graph."""

    ABS_PRECISION = "abs_precision"
    PRECISION = "precision"
    ABS_SCALED_INTERACTION = "abs_scaled_interaction"
    SCALED_INTERACTION = "scaled_interaction"
