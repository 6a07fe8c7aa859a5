import pytest
import torch

from vnce_engine.optim import bfgs
from vnce_engine.runtime.progress import FitCancelledError

START = torch.tensor([-1.2, 1.0], dtype=torch.float64)


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def test_finds_the_bottom_of_a_curved_valley():
    info = bfgs.minimise(rosenbrock, START, max_iterations=200)

    assert info.parameters.numpy() == pytest.approx([1, 1], abs=1e-4)
    assert info.gradient_norm < 1e-5


def test_states_how_far_the_loss_fell():
    info = bfgs.minimise(rosenbrock, START, max_iterations=7)

    assert info.num_iterations == 7
    assert info.loss == rosenbrock(info.parameters).item()
    assert info.improvement == rosenbrock(START).item() - info.loss > 0


def test_turns_back_from_points_where_the_loss_is_not_finite():
    # log is NaN below zero, and the first step from 1e-3 would go there or far beyond the minimum.
    info = bfgs.minimise(
        lambda x: (x - x.log()).sum(), torch.tensor([1e-3, 50.0]).double(), max_iterations=200
    )

    assert info.parameters.numpy() == pytest.approx([1, 1], abs=1e-4)


def test_what_the_callback_raises_ends_the_search_at_once():
    losses = []

    def on_iteration(loss):
        losses.append(loss)
        if len(losses) == 3:
            raise FitCancelledError

    with pytest.raises(FitCancelledError):
        bfgs.minimise(rosenbrock, START, max_iterations=100, on_iteration=on_iteration)
    assert len(losses) == 3
