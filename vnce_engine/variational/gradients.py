"""Two unbiased gradients of the data term with respect to q's parameters.

Both differentiate mean_x E_q log h, h the probability of the data's class. The reparametrised one
follows the draws, and needs a differentiable log phi and a family that maps uniforms smoothly; the
score-function one needs log q's gradient alone, and serves discrete or non-differentiable models.
Source: Rhodes and Gutmann (2019), Section 3.2, which names both.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from vnce_engine.variational.objectives import data_term, log_weight
from vnce_engine.variational.protocols import UnnormalisedModel, VariationalFamily


def reparametrised_gradient(
    model: UnnormalisedModel,
    family: VariationalFamily,
    theta: Tensor,
    alpha: Tensor,
    x: Tensor,
    log_noise: Tensor,
    uniforms: Tensor,
    nu: float,
) -> Tensor:
    """Return the gradient (a,) by differentiating through the draws.

    Shapes: x (n, d), `log_noise` of x (n,), `uniforms` (k, n, m).
    """
    leaf = alpha.detach().requires_grad_(True)
    z = family.rsample(leaf, x, uniforms)
    value = data_term(log_weight(model, family, theta, leaf, x, z) - log_noise, nu)
    (gradient,) = torch.autograd.grad(value, leaf)
    return gradient


def score_function_gradient(
    model: UnnormalisedModel,
    family: VariationalFamily,
    theta: Tensor,
    alpha: Tensor,
    x: Tensor,
    log_noise: Tensor,
    uniforms: Tensor,
    nu: float,
    *,
    has_baseline: bool = True,
) -> Tensor:
    """Return the gradient (a,) by weighting log q's gradient with the value of each draw.

    The baseline of a draw is the mean value of the row's other draws, which leaves the expectation
    as it is and takes most of the variance away; it needs k >= 2. Shapes as for
    `reparametrised_gradient`. Raises `ValueError` where k is 1 and a baseline is asked for.
    """
    num_draws = uniforms.shape[0]
    if has_baseline and num_draws < 2:
        raise ValueError("`uniforms` must hold at least 2 draws of each row for a baseline, got 1")
    leaf = alpha.detach().requires_grad_(True)
    z = family.rsample(alpha, x, uniforms).detach()
    log_q = family.log_prob(leaf, z, x)
    log_ratio = model.log_phi(theta, x, z).detach() - log_q - log_noise
    value = logsigmoid(log_ratio - math.log(nu))  # (k, n); depends on alpha through log q alone
    fixed = value.detach()
    if has_baseline:
        others = (fixed.sum(dim=0) - fixed) / (num_draws - 1)
        weights = fixed - others
    else:
        weights = fixed
    # The second part is the value's own dependence on log q.
    (gradient,) = torch.autograd.grad((weights * log_q + value).mean(), leaf)
    return gradient
