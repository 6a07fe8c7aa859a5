"""Log importance weights of a model and a family, and the bound of VI that they give."""

from torch import Tensor

from vnce_engine.black_box.protocols import UnnormalisedModel, VariationalFamily


def log_weight(
    model: UnnormalisedModel,
    family: VariationalFamily,
    theta: Tensor,
    alpha: Tensor,
    u: Tensor,
    z: Tensor,
) -> Tensor:
    """Return log phi(u, z) - log q(z | u), (k, n): the log importance weights of draws."""
    return model.log_phi(theta, u, z) - family.log_prob(alpha, z, u)


def elbo(log_weights: Tensor) -> Tensor:
    """Return the evidence lower bound, the mean of log p(u, z) - log q(z | u), for VI."""
    return log_weights.mean()
