"""What is fitted to a sample, and how."""

import math
from dataclasses import dataclass
from enum import StrEnum

from vnce_engine.runtime.checks import check_choice, check_count, check_number

# More are a slip: their memory would not do.
_MOST_NOISE = 10_000


class Form(StrEnum):
    """Which of the paper's two mixtures it is."""

    NORMALISED = "normalised"
    """Both components weigh one half: equation "mog standard"."""
    UNNORMALISED = "unnormalised"
    """They weigh as their standard deviations do, and c is a parameter: "mog unnormalised"."""


class Estimator(StrEnum):
    """How it is estimated."""

    VNCE = "vnce"
    """J_VNCE is raised in theta, c and the weights of the Bernoulli q together."""
    EXACT_EM = "exact-em"
    """J_VNCE is raised by turns, q the posterior."""
    NCE = "nce"
    MLE = "mle"


@dataclass(frozen=True)
class MixtureOptions:
    """The mixture, its estimator, and their settings; raises `ValueError` naming a bad one."""

    form: Form = Form.UNNORMALISED
    sigma_1: float = 1.0
    """The known component's standard deviation, in the units of the data."""
    estimator: Estimator = Estimator.VNCE
    noise_ratio: int = 10
    """Noise values per value of data, nu; maximum likelihood has no noise."""
    noise_scale: float = 1.0
    """The noise's standard deviation over the root mean square of the data."""
    num_starts: int = 5
    max_iterations: int | None = None
    """BFGS iterations, or pairs of EM steps, from one start; None: 200 and 500."""

    def __post_init__(self) -> None:
        check_choice("form", self.form, tuple(Form))
        check_choice("estimator", self.estimator, tuple(Estimator))
        check_number("sigma_1", self.sigma_1, "a positive number", 0, math.inf)
        check_number("noise_scale", self.noise_scale, "a positive number", 0, math.inf)
        check_count("noise_ratio", self.noise_ratio, most=_MOST_NOISE)
        check_count("num_starts", self.num_starts)
        if self.max_iterations is not None:
            check_count("max_iterations", self.max_iterations)
