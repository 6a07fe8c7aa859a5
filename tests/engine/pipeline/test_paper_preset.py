import math

import numpy as np
import pytest

from vnce_engine.contrastive.paper_recipe import MAX_ITERATIONS, NUM_DRAWS
from vnce_engine.estimators.truncated_gaussian import TruncatedGaussianVNCE
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(100)
    X = sample_truncated_gaussian(ring_precision(4, rng), 150, rng)
    X = mask_completely_at_random(X, 0.3, rng)
    X[7] = math.nan
    return X


def paper(**options):
    return TruncatedGaussianVNCE(preset="paper", random_state=0, **options)


@pytest.mark.slow
def test_the_recipe_fills_every_attribute_of_the_estimator(table):
    model = paper().fit(table)

    assert model.linear_choice_ == "zero"
    assert (model.linear_ == 0).all()
    assert model.penalty_ is None
    assert model.n_iter_ <= MAX_ITERATIONS
    assert np.array_equal(model.precision_, model.precision_.T)
    assert (np.diagonal(model.precision_) > 0).all()
    assert len(model.edges_) == 6
    assert model.diagnostics_.num_draws == NUM_DRAWS
    assert 1 / NUM_DRAWS <= model.diagnostics_.effective_sample_size <= 1
    assert model.diagnostics_.num_empty_rows == np.isnan(table).all(axis=1).sum()
    assert "missing-completely-at-random" in {warning.code for warning in model.warnings_}


def test_the_cap_is_reported_as_not_converged_with_what_to_try(table):
    model = paper(max_iter=10).fit(table)

    assert model.status_ is FitStatus.MAX_ITERATIONS
    assert not model.converged_
    assert model.n_iter_ == 10
    assert "max_iter" in model.message_


@pytest.mark.slow
def test_precision_follows_the_units_of_the_columns(table):
    # Powers of two change no digit, so that the two fits take the very same steps.
    units = np.array([2.0**-30, 1.0, 2.0**30, 2.0**3])

    plain, scaled = paper(max_iter=20).fit(table), paper(max_iter=20).fit(table * units)

    assert scaled.precision_ * np.outer(units, units) == pytest.approx(plain.precision_, rel=1e-12)


@pytest.mark.slow
def test_options_that_the_paper_leaves_open_are_used(table):
    plain = paper(max_iter=20).fit(table)
    free = paper(max_iter=20, linear="free").fit(table)
    shrunk = paper(max_iter=20, penalty=30.0, penalty_kind="ridge").fit(table)

    assert free.linear_choice_ == "free"
    assert (free.linear_ != 0).all()
    assert shrunk.penalty_ == 30.0
    largest = [max(abs(edge.precision) for edge in model.edges_) for model in (plain, shrunk)]
    assert largest[1] < 0.5 * largest[0]


def test_progress_never_falls_and_true_cancels(table):
    steps = []

    def on_step(step):
        steps.append(step)
        return len(steps) == 12

    model = paper().fit(table, on_step=on_step)

    fractions = [step.fraction for step in steps]
    assert model.status_ is FitStatus.CANCELLED
    assert len(steps) == 12
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] <= fractions[-1] <= 1


def test_observed_zeros_are_refused_with_columns_and_counts(table):
    with_zeros = table.copy()
    with_zeros[[0, 3, 5], 2] = 0.0

    with pytest.raises(ValueError, match=r"there are zeros in column 2 \(3\)"):
        paper().fit(with_zeros)


def test_fewer_rows_than_parameters_need_a_penalty(table):
    with pytest.raises(ValueError, match="`penalty` must be"):
        paper().fit(table[:12])


def test_an_unknown_preset_is_refused_by_name(table):
    with pytest.raises(ValueError, match="`preset` must be one of 'default', 'paper', got 'fast'"):
        TruncatedGaussianVNCE(preset="fast").fit(table)
