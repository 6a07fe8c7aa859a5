"""The EM algorithm for VNCE on the normalised mixture, whose posterior is known.

Source: Rhodes and Gutmann (2019), Corollary 1 and Section 4.2.
"""

from collections.abc import Callable

from torch import Tensor

from vnce_engine.experiments.mixture import objectives
from vnce_engine.experiments.mixture.data import MixtureData
from vnce_engine.experiments.mixture.model import log_joint, log_posterior
from vnce_engine.optim.batched_bfgs import maximise


def e_step(theta: Tensor, data: MixtureData) -> Tensor:
    """Return log q(z | x) (2, b, n): the posterior at theta, at which the bound is tight."""
    return log_posterior(log_joint(theta, data.x))


def nce_maximum(theta: Tensor, data: MixtureData, nu: float) -> Tensor:
    """Return the theta (b,) at which J_NCE is largest, sought from `theta` upwards."""
    return _maximum(theta, lambda at, rows: objectives.nce(log_joint, at, data.of(rows), nu))


def m_step(theta: Tensor, log_q: Tensor, data: MixtureData, nu: float) -> Tensor:
    """Return the theta (b,) at which J_VNCE is largest, sought from `theta` upwards."""
    return _maximum(
        theta, lambda at, rows: objectives.vnce(log_joint, at, log_q[:, rows], data.of(rows), nu)
    )


def _maximum(theta: Tensor, objective: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return where an objective of theta (a,), of the mixtures of some numbers, is largest."""
    found = maximise(lambda at, rows: objective(at[:, 0].exp(), rows), theta.log().unsqueeze(1))
    return found.parameters[:, 0].exp()
