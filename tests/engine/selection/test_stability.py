"""Stability selection: its bound, the frequencies, and half-samples that fail."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from vnce_engine import FitStep, GaussianVNCE, TruncatedGaussianVNCE
from vnce_engine.data.observations import Observations
from vnce_engine.selection import stability
from vnce_engine.selection.stability import StabilityRule, bound_constant, has_bound
from vnce_engine.simulate import (
    mask_completely_at_random,
    ring_precision,
    sample_truncated_gaussian,
)


@pytest.mark.parametrize(
    ("threshold", "num_halvings", "constant"),
    [
        # Shah and Samworth (2013), eq. (8), worked out by hand.
        (0.75, 50, 1 / (2 * (0.5 - 0.01))),
        (0.6, 50, 1 / (2 * (0.2 - 0.01))),
        (0.9, 50, 4 * (0.1 + 0.01) / 1.02),
        (1.0, 50, 4 * 0.01 / 1.02),
    ],
)
def test_the_bound_s_constant_is_that_of_its_source(
    threshold: float, num_halvings: int, constant: float
) -> None:
    assert bound_constant(threshold, num_halvings) == pytest.approx(constant, rel=1e-12)


@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.75, 0.76, 1.0])
@pytest.mark.parametrize("num_halvings", [1, 2, 3, 50])
def test_there_is_a_bound_where_the_constant_is_positive(
    threshold: float, num_halvings: int
) -> None:
    try:
        positive = bound_constant(threshold, num_halvings) > 0
    except ZeroDivisionError:
        positive = False
    assert has_bound(threshold, num_halvings) is positive
    assert not has_bound(threshold, 0)


def test_the_bound_allows_fewer_edges_where_the_threshold_is_lower() -> None:
    allowed = [StabilityRule(100, t, 1.0).most_edges(190) for t in (0.6, 0.75, 0.9)]
    assert allowed == sorted(allowed)
    # Solved for q: C q² / p = 1.
    assert bound_constant(0.9, 50) * allowed[2] ** 2 / 190 == pytest.approx(1.0)
    # However many false edges are allowed, q stays where the bound is proven.
    assert StabilityRule(100, 0.9, 1e6).most_edges(190) == pytest.approx(190 / np.sqrt(3))


@pytest.fixture(scope="module")
def fitted() -> TruncatedGaussianVNCE:
    rng = np.random.default_rng(43)
    X = sample_truncated_gaussian(ring_precision(5, rng), 500, rng)
    return TruncatedGaussianVNCE(
        linear="zero",
        penalty_kind="l1",
        selection="stability",
        n_subsamples=20,
        noise_ratio=3,
        random_state=0,
    ).fit(X)


def test_the_graph_has_the_edges_whose_inclusion_reaches_the_threshold(
    fitted: TruncatedGaussianVNCE,
) -> None:
    assert fitted.stability_ is not None
    inclusion = fitted.stability_.inclusion
    assert inclusion is not None
    assert (inclusion == inclusion.T).all()
    for edge in fitted.edges_:
        assert edge.inclusion == inclusion[edge.source, edge.target]
        assert (edge.precision != 0) == (edge.inclusion >= 0.75)
    assert (fitted.precision_ == fitted.precision_.T).all()


def test_inclusions_are_shares_of_the_half_samples(fitted: TruncatedGaussianVNCE) -> None:
    stability = fitted.stability_
    assert stability is not None
    assert stability.inclusion is not None
    assert stability.n_requested == 20
    assert stability.n_ok + stability.n_failed == 20
    counts = stability.inclusion * stability.n_ok
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    assert stability.mean_edges == pytest.approx(stability.inclusion.sum() / 2)


def test_the_weakest_strength_that_the_bound_allows_is_chosen(
    fitted: TruncatedGaussianVNCE,
) -> None:
    path = fitted.penalty_path_
    assert fitted.stability_ is not None
    chosen = next(i for i, step in enumerate(path) if step.chosen)
    assert path[chosen].criterion == fitted.stability_.expected_false_edges
    assert path[chosen].criterion <= 2.0
    # A weaker one is out of bounds: by false edges, or because q would exceed p / sqrt(3).
    if chosen + 1 < len(path):
        most = StabilityRule(20, 0.75, 2.0).most_edges(10)
        constant = bound_constant(0.75, fitted.stability_.n_ok // 2)
        assert np.sqrt(path[chosen + 1].criterion * 10 / constant) > most


def small_table(num_rows: int = 16) -> np.ndarray:
    """Return 16 rows with 30 % gaps, one column nearly empty: many halves cannot be fitted."""
    rng = np.random.default_rng(16)
    X = mask_completely_at_random(np.abs(rng.normal(size=(num_rows, 5))), 0.3, rng)
    X[:, 4] = np.nan
    X[::5, 4] = np.abs(rng.normal(size=len(X[::5])))
    return X


def few_choices(**choices: Any) -> dict[str, Any]:
    return {
        "linear": "zero",
        "penalty_kind": "l1",
        "selection": "stability",
        "noise_ratio": 2,
        "min_observed": 2,
        "random_state": 1,
        **choices,
    }


def test_half_samples_that_fail_are_counted_by_cause_and_the_others_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[FitStep] = []
    graphs, calls = stability._graphs, itertools.count()

    def fail_every_fourth(*arguments: Any) -> torch.Tensor | str:
        if next(calls) % 4 == 0:
            return "not this one"
        return graphs(*arguments)

    monkeypatch.setattr(stability, "_graphs", fail_every_fourth)
    model = TruncatedGaussianVNCE(**few_choices(n_subsamples=30, penalties=[0.3, 0.1])).fit(
        small_table()[:, :4], on_step=steps.append
    )
    found = model.stability_
    assert found is not None
    assert found.n_requested == 30
    assert found.n_ok == 30 - found.n_failed
    assert found.failures["not this one"] == 8
    assert found.inclusion is not None
    codes = {warning.code: warning.message for warning in model.warnings_}
    assert f"{found.n_failed} of 30 half-samples failed" in codes["half-samples-failed"]
    # Every half-sample that has not failed at once moves progress on, and the others skip ahead.
    fractions = [step.fraction for step in steps if step.stage == "penalty"]
    assert fractions == sorted(fractions)
    assert len(set(fractions)) >= found.n_ok


def test_too_many_failures_leave_no_inclusion_but_a_reason_and_a_result() -> None:
    X = np.ones((16, 3))
    X[:2] = [[0.5, 0.4, 0.3], [2.0, 3.0, 4.0]]  # of a pair of halves one at most has both
    model = TruncatedGaussianVNCE(**few_choices(n_subsamples=10, penalties=[0.3, 0.1])).fit(X)
    found = model.stability_
    assert found is not None
    # A half with one of the two rows has two values of every column, and one of a pair with both
    # leaves the other none.
    assert found.failures == {"no two columns with two different observed values": found.n_failed}
    assert found.n_ok == 10 - found.n_failed
    if found.n_ok < 5:
        assert found.inclusion is None


def test_a_column_that_hardly_varies_costs_other_pairs_no_half_sample() -> None:
    rng = np.random.default_rng(43)
    X = sample_truncated_gaussian(ring_precision(5, rng), 300, rng)
    rare = np.column_stack([X, np.ones(300)])
    rare[:1, 5] = 3.0  # in one half of each pair
    choices = few_choices(n_subsamples=20, min_observed=None, noise_ratio=3, penalties=[0.3, 0.1])
    model = TruncatedGaussianVNCE(**choices).fit(rare)
    found, alone = model.stability_, TruncatedGaussianVNCE(**choices).fit(X).stability_
    assert found is not None
    assert alone is not None
    assert found.inclusion is not None
    assert alone.inclusion is not None
    assert found.counted is not None
    assert (found.n_ok, found.n_failed) == (20, 0)
    assert (found.counted[:5, :5] == 20).all()
    assert (found.counted[5] == 10).all()
    # Other half-samples of the same rows: shares of 20 have a standard error of at most .11 each.
    difference = found.inclusion[:5, :5] - alone.inclusion
    assert np.abs(difference).max() < 5 * np.sqrt(2 * 0.25 / 20)


@pytest.mark.parametrize("estimator", [TruncatedGaussianVNCE, GaussianVNCE])
def test_pairs_that_too_few_half_samples_say_something_of_have_no_inclusion(
    estimator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(43)
    X = sample_truncated_gaussian(ring_precision(4, rng), 200, rng)
    X = np.column_stack([X[:, :2], np.ones(200), X[:, 2:]])
    X[0, 2] = 3.0  # in one half of each pair
    choices = few_choices(n_subsamples=20, noise_ratio=3, penalties=[0.3, 0.1])
    monkeypatch.setattr(stability, "SMALLEST_SHARE_OK", 0.6)
    if estimator is GaussianVNCE:
        del choices["linear"]
    model = estimator(**choices).fit(X)
    found = model.stability_
    assert found.inclusion is not None
    assert found.counted[2, 2] == 10
    others = np.delete(np.arange(5), 2)
    assert np.isnan(found.inclusion[2, others]).all()
    assert np.isfinite(found.inclusion[np.ix_(others, others)]).all()
    assert (found.counted[np.ix_(others, others)] == 20).all()
    for edge in model.edges_:
        has_rare = 2 in (edge.source, edge.target)
        assert (edge.inclusion is None) == has_rare
        assert edge.precision == 0 or not has_rare
    (warning,) = [w for w in model.warnings_ if w.code == "pairs-without-inclusion"]
    assert warning.columns == ("column 2",)
    assert "column 2 (10 of 20)" in warning.message
    assert np.isfinite(model.precision_).all()
    assert found.mean_edges == pytest.approx(np.nansum(found.inclusion) / 2)


def test_half_samples_come_in_pairs_that_share_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    halves: list[set[int]] = []

    varying = stability._varying

    def note(observations: Observations, rows: torch.Tensor) -> torch.Tensor:
        halves.append(set(rows.tolist()))
        return varying(observations, rows)

    monkeypatch.setattr(stability, "_varying", note)
    X = np.abs(np.random.default_rng(0).normal(size=(41, 3)))
    TruncatedGaussianVNCE(
        penalty_kind="l1", selection="stability", n_subsamples=4, linear="zero", random_state=0
    ).fit(X)
    assert [len(half) for half in halves] == [20] * 4
    assert not halves[0] & halves[1]
    assert not halves[2] & halves[3]
