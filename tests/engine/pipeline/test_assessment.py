"""What the last step of a fit says of a linear term that the fit does without."""

import numpy as np
import torch
from scipy.stats import binom

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.quadratic import QuadraticModel
from vnce_engine.inference.uncertainty import UnpenalisedStep
from vnce_engine.pipeline.assessment import _linear
from vnce_engine.runtime.progress import Progress
from vnce_engine.simulate import (
    hub_precision,
    mask_completely_at_random,
    sample_truncated_gaussian,
)


def test_a_linear_term_that_held_out_rows_leave_out_is_found_and_allowed_for() -> None:
    rng = np.random.default_rng(1)
    precision = hub_precision(6, rng)
    X = sample_truncated_gaussian(precision, 400, rng, linear=rng.uniform(-0.5, 1.0, 6))
    chosen = TruncatedGaussianVNCE().fit(X)
    assert chosen.linear_choice_ == "zero"
    assert [warning.code for warning in chosen.warnings_] == ["linear-term-found"]
    # So have fits by its choices, of resamples and groups.
    assert chosen.choices().linear == "free"
    without, free = (TruncatedGaussianVNCE(linear=linear).fit(X) for linear in ("zero", "free"))
    assert [warning.code for warning in without.warnings_] == ["linear-term-needed"]
    assert without.choices().linear == "zero"
    np.testing.assert_array_equal(without.precision_, chosen.precision_)
    # Without the penalty's bias the estimates are nearly those of a fit with the term.
    off = {}
    for name, model in (("chosen", chosen), ("without", without)):
        off[name] = np.abs(debiased(model) - debiased(free)).mean()
    assert off["chosen"] < 0.5 * off["without"]


def test_a_linear_term_that_is_left_out_is_said_to_be_untested_where_rows_are_few() -> None:
    """Of 6 columns, 28 parameters; no term that was asked for is none that was left out."""
    rng = np.random.default_rng(2)
    X = sample_truncated_gaussian(hub_precision(6, rng), 139, rng)
    for linear, is_told in (("auto", True), ("zero", False)):
        model = TruncatedGaussianVNCE(linear=linear, penalty=1.0).fit(X)
        assert model.linear_choice_ == "zero"
        codes = {warning.code for warning in model.warnings_}
        assert ("linear-term-untested" in codes) == is_told
        assert "linear-term-needed" not in codes


def debiased(model: TruncatedGaussianVNCE) -> np.ndarray:
    """Return the debiased partial correlations of all pairs, in the order of the columns."""
    edges = sorted(model.edges_, key=lambda edge: (edge.source, edge.target))
    return np.array([edge.debiased for edge in edges])


def test_without_a_linear_term_one_is_found_as_often_as_the_level_says() -> None:
    """At the truth, a fifth of the cells missing, within the chance of a thousandth either way."""
    num_tables, level = 40, 0.2
    precision = np.array([[2.0, 0.7, 0.0], [0.7, 1.5, -0.6], [0.0, -0.6, 1.2]])
    found = 0
    for seed in range(num_tables):
        rng = np.random.default_rng([seed, 3])
        X = sample_truncated_gaussian(precision, 300, rng)
        observations = Observations.from_array(mask_completely_at_random(X, 0.2, rng))
        generator = torch.Generator().manual_seed(seed)
        problem = Problem.prepare(observations, 3, "sobol", generator)
        truth = QuadraticModel(
            torch.from_numpy(precision), torch.zeros(3, dtype=torch.float64), torch.zeros(())
        )
        augmented = truth.with_columns_scaled(1 / problem.scale).augmented()
        rows = problem.scored_rows(problem.sample, Progress(None))
        everything = torch.ones_like(augmented, dtype=torch.bool)
        step = UnpenalisedStep.of(rows, augmented, everything)
        assert step is not None
        found += step.p_value(_linear(augmented)) < level
    lower, upper = binom.ppf([0.001, 0.999], num_tables, level)
    assert lower <= found <= upper
