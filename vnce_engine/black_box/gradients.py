"""Two unbiased estimators of the gradient in alpha of E_q[g], where g itself depends on q.

Each comes as a surrogate: a scalar whose derivative in alpha is the estimate. In VNCE and in VI
g is a function of the log importance weight log phi(u, z) - log q(z | u), given by the caller as
`value`, which maps log weights (k, n) to (k, n). Shapes: u (n, d), uniforms (k, n, m).
Source: Rhodes and Gutmann (2019), Section 3.2, which names both.
"""

from collections.abc import Callable

from torch import Tensor

from vnce_engine.black_box.objectives import log_weight
from vnce_engine.black_box.protocols import UnnormalisedModel, VariationalFamily

Value = Callable[[Tensor], Tensor]


def reparametrised(
    model: UnnormalisedModel,
    family: VariationalFamily,
    theta: Tensor,
    alpha: Tensor,
    u: Tensor,
    uniforms: Tensor,
    value: Value,
) -> Tensor:
    """Return the mean value of draws that move with alpha; log phi must be differentiable in z.

    Source: Kingma and Welling (2013), arXiv:1312.6114.
    """
    z = family.rsample(alpha, u, uniforms)
    return value(log_weight(model, family, theta, alpha, u, z)).mean()


def score_function(
    model: UnnormalisedModel,
    family: VariationalFamily,
    theta: Tensor,
    alpha: Tensor,
    u: Tensor,
    uniforms: Tensor,
    value: Value,
) -> Tensor:
    """Return a surrogate for draws that stay where they are, of which only the slope has a meaning.

    The gradient is E_q[(g - b) ∇ log q + ∇ g]. The baseline b of a draw is the mean of g over the
    row's other draws: independent of this draw, so that it brings no bias, and near the mean of g,
    so that it lowers the variance. Raises `ValueError` for fewer than two draws a row.
    Source: Mnih and Rezende (2016), arXiv:1602.06725, Section 2.5.
    """
    num_draws = uniforms.shape[0]
    if num_draws < 2:
        raise ValueError(f"`uniforms` must hold at least 2 draws a row, got {num_draws}")
    values, log_q = _values_of_held_draws(model, family, theta, alpha, u, uniforms, value)
    held = values.detach()
    baseline = (held.sum(dim=0) - held) / (num_draws - 1)
    return ((held - baseline) * log_q + values).mean()


def plain_score_function(
    model: UnnormalisedModel,
    family: VariationalFamily,
    theta: Tensor,
    alpha: Tensor,
    u: Tensor,
    uniforms: Tensor,
    value: Value,
) -> Tensor:
    """Return the surrogate of `score_function` without a baseline, for one draw a row."""
    values, log_q = _values_of_held_draws(model, family, theta, alpha, u, uniforms, value)
    return (values.detach() * log_q + values).mean()


def _values_of_held_draws(
    model: UnnormalisedModel,
    family: VariationalFamily,
    theta: Tensor,
    alpha: Tensor,
    u: Tensor,
    uniforms: Tensor,
    value: Value,
) -> tuple[Tensor, Tensor]:
    """Return g and log q (k, n) at draws that do not move with alpha."""
    z = family.rsample(alpha, u, uniforms).detach()
    log_q = family.log_prob(alpha, z, u)
    return value(model.log_phi(theta, u, z) - log_q), log_q
