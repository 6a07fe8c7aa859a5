"""What VNCE and NCE of the truncated Gaussian share: the linear term."""

from dataclasses import replace

from vnce_engine.checks import check_choice
from vnce_engine.contrastive import ContrastiveEstimator
from vnce_engine.fit import AUTO, FitOptions


class TruncatedGaussianEstimator(ContrastiveEstimator):
    """A truncated Gaussian network, fitted by telling data from noise."""

    linear: str

    def _options(self) -> FitOptions:
        return replace(super()._options(), linear=self.linear)

    def _check_parameters(self) -> None:
        check_choice("linear", self.linear, (AUTO, "free", "zero"))
        super()._check_parameters()
