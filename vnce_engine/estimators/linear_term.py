"""What VNCE and NCE of the truncated Gaussian share: the linear term."""

from dataclasses import replace

from vnce_engine.estimators.contrastive import ContrastiveEstimator
from vnce_engine.pipeline.fit import AUTO, FitOptions
from vnce_engine.runtime.checks import check_choice


class TruncatedGaussianEstimator(ContrastiveEstimator):
    """A truncated Gaussian network, fitted by telling data from noise."""

    linear: str

    def _options(self) -> FitOptions:
        return replace(super()._options(), linear=self.linear)

    def _check_parameters(self) -> None:
        check_choice("linear", self.linear, (AUTO, "free", "zero"))
        super()._check_parameters()
