"""What VNCE and NCE of the truncated Gaussian share: the linear term, and a barrier."""

from dataclasses import replace

from vnce_engine.checks import check_choice
from vnce_engine.contrastive import ContrastiveEstimator
from vnce_engine.fit import AUTO, FitOptions

# log det K has this weight over n: that of two normal rows' likelihood.
BARRIER_ROWS = 1.0


class TruncatedGaussianEstimator(ContrastiveEstimator):
    """A truncated Gaussian network, fitted by telling data from noise."""

    linear: str
    positive_definite: str

    def _options(self) -> FitOptions:
        return replace(
            super()._options(),
            linear=self.linear,
            barrier_rows=BARRIER_ROWS if self.positive_definite == "barrier" else 0.0,
        )

    def _check_parameters(self) -> None:
        check_choice("linear", self.linear, (AUTO, "free", "zero"))
        check_choice("positive_definite", self.positive_definite, ("warn", "barrier"))
        super()._check_parameters()
