"""A fit that was interrupted goes on from its checkpoint, and ends where it would have ended."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from tests.engine.saves import fit_and_saves, largest_difference
from vnce_engine.estimators.gaussian import GaussianVNCE
from vnce_engine.estimators.truncated_gaussian import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.reports import FitStep
from vnce_engine.selection import stability

NUM_ROWS, MISSING = 200, 0.25
TOLERANCE = 3e-3
# Each of the two ends is about the tolerance away from the same optimum, or nearer.
APART = 4 * TOLERANCE
# That of an entry of K, columns scaled, by the pairs of cells that are there.
STANDARD_ERROR = 1 / math.sqrt(NUM_ROWS * (1 - MISSING) ** 2)
# A grid's step. The strength is a mean over the grid by how well each does on held-out rows.
GRID_STEP = 1.8

MAKERS: dict[str, Callable[[], Any]] = {
    "fixed": partial(TruncatedGaussianVNCE, penalty=0.5, linear="zero"),
    "complete": partial(TruncatedGaussianNCE, penalty=0.5, linear="free"),
    "gaussian": partial(GaussianVNCE, penalty=0.5),
    "paper": partial(TruncatedGaussianVNCE, preset="paper", max_iter=16),
    "ebic": partial(
        TruncatedGaussianVNCE,
        linear="zero",
        penalty_kind="l1",
        penalties=(0.5, 0.1),
        selection="ebic",
    ),
    "stability": partial(
        TruncatedGaussianVNCE,
        linear="zero",
        penalty_kind="l1",
        penalties=(0.5, 0.1),
        selection="stability",
        n_subsamples=4,
    ),
}


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    """Return 200 rows of 4 columns with a quarter of the cells missing."""
    rng = np.random.default_rng(5)
    table = np.abs(rng.normal(size=(NUM_ROWS, 4)) @ rng.normal(size=(4, 4)))
    table[rng.random(table.shape) < MISSING] = np.nan
    return table


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_a_fit_that_goes_on_from_any_save_ends_within_the_tolerance(
    name: str, table: np.ndarray
) -> None:
    def fit(checkpoint: Checkpoint) -> Any:
        return MAKERS[name]().set_params(random_state=1).fit(table, checkpoint=checkpoint)

    whole, stored = fit_and_saves(fit, 6)
    for content in stored:
        checkpoint = Checkpoint.load(content)
        resumed = fit(checkpoint)
        assert checkpoint.num_taken > 0
        assert resumed.status_ == whole.status_
        assert resumed.penalty_ == whole.penalty_
        assert largest_difference(resumed, whole, table) < APART
        if whole.stability_ is not None:
            np.testing.assert_array_equal(resumed.stability_.inclusion, whole.stability_.inclusion)


@pytest.mark.slow
def test_choices_that_go_on_from_any_save_come_out_about_the_same(table: np.ndarray) -> None:
    def fit(checkpoint: Checkpoint) -> TruncatedGaussianVNCE:
        estimator = TruncatedGaussianVNCE(penalties=(1.0, 0.3, 0.1), random_state=1)
        return estimator.fit(table, checkpoint=checkpoint)

    whole, stored = fit_and_saves(fit, 5)
    for content in stored:
        resumed = fit(Checkpoint.load(content))
        assert resumed.linear_choice_ == whole.linear_choice_
        assert resumed.penalty_kind_ == whole.penalty_kind_
        assert 1 / GRID_STEP < resumed.penalty_ / whole.penalty_ < GRID_STEP
        # Less than another seed's noise would move it.
        assert largest_difference(resumed, whole, table) < 0.25 * STANDARD_ERROR


def stop_at_the_eighth(steps: list[FitStep], step: FitStep) -> bool:
    steps.append(step)
    return len(steps) == 8


@pytest.mark.slow
def test_a_fit_that_is_interrupted_again_and_again_ends_too(table: np.ndarray) -> None:
    def fit(checkpoint: Checkpoint, **how: Any) -> TruncatedGaussianVNCE:
        estimator = TruncatedGaussianVNCE(penalty=0.5, linear="zero", random_state=1)
        return estimator.fit(table, checkpoint=checkpoint, **how)

    whole, checkpoint, num_attempts = fit(Checkpoint()), Checkpoint(), 0
    while True:
        num_attempts += 1
        assert num_attempts < 100
        fitted = fit(checkpoint, on_step=partial(stop_at_the_eighth, []))
        if fitted.status_ != "cancelled":
            break
        checkpoint = Checkpoint.load(checkpoint.dump())
    assert num_attempts > 2
    assert largest_difference(fitted, whole, table) < APART


@pytest.mark.slow
def test_half_samples_that_fail_keep_their_place(
    table: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs, num_made = stability._graphs, 0

    def fail_the_second(*arguments: Any) -> torch.Tensor | str:
        nonlocal num_made
        num_made += 1
        return "not this one" if num_made == 2 else graphs(*arguments)

    monkeypatch.setattr(stability, "_graphs", fail_the_second)

    def fit(checkpoint: Checkpoint) -> TruncatedGaussianVNCE:
        return MAKERS["stability"]().set_params(random_state=1).fit(table, checkpoint=checkpoint)

    whole, stored = fit_and_saves(fit, 2)
    assert whole.stability_.failures == {"not this one": 1}
    resumed = fit(Checkpoint.load(stored[-1]))
    assert resumed.stability_.failures == whole.stability_.failures
    assert (num_made, resumed.stability_.n_ok) == (4, whole.stability_.n_ok)


def test_stages_come_back_in_their_order_and_those_within_one_that_has_ended_are_forgotten() -> (
    None
):
    checkpoint = Checkpoint()

    def whole() -> float:
        for number in (1, 2):
            checkpoint.stage().save((number, torch.full((3,), float(number))))
        sizes.append(len(checkpoint.dump()))
        return 7.0

    sizes: list[int] = []
    assert checkpoint.once(whole) == 7.0
    stage = checkpoint.stage()
    assert stage.saved is None
    for status in (None, "converged"):
        stage.save(({"of": "a generator", "state": 2**127}, status))
    assert len(checkpoint.dump()) < sizes[0]

    again = Checkpoint.load(Checkpoint.load(checkpoint.dump()).dump())
    assert again.once(whole) == 7.0
    assert len(sizes) == 1
    stage = again.stage()
    assert stage.saved == ({"of": "a generator", "state": 2**127}, "converged")
    assert stage.is_last
    assert again.stage().saved is None
    assert again.num_taken == 2


def test_a_stage_that_was_cut_short_goes_on_with_those_within_it() -> None:
    def both(first: float) -> float:
        within = [checkpoint.once(lambda: first), checkpoint.stage()]
        if within[1].saved is None:
            within[1].save(2.0)
            raise KeyboardInterrupt
        return within[0] + within[1].saved

    checkpoint = Checkpoint()
    with pytest.raises(KeyboardInterrupt):
        checkpoint.once(partial(both, 1.0))
    checkpoint = Checkpoint.load(checkpoint.dump())
    assert checkpoint.once(partial(both, 0.0)) == 3.0
    assert checkpoint.stage().saved is None


def test_a_fit_may_be_a_stage_of_something_larger() -> None:
    def part(name: str) -> str:
        checkpoint.begin_fit(name)
        return checkpoint.once(lambda: name)

    checkpoint = Checkpoint()
    checkpoint.begin_fit("all")
    assert [checkpoint.once(partial(part, name)) for name in "ab"] == ["a", "b"]
    checkpoint = Checkpoint.load(checkpoint.dump())
    with pytest.raises(UnusableCheckpointError, match="another table, options or seed"):
        checkpoint.begin_fit("others")


@pytest.mark.parametrize(
    ("changes", "factor"),
    [
        ({"random_state": 2}, 1.0),
        ({"column_transform": "sqrt"}, 1.0),
        ({"penalty": 0.6}, 1.0),
        ({}, 1.5),
    ],
    ids=["seed", "transform", "penalty", "table"],
)
def test_the_checkpoint_of_another_fit_is_refused(
    table: np.ndarray, changes: dict[str, Any], factor: float
) -> None:
    choices: dict[str, Any] = {"penalty": 0.5, "linear": "zero", "random_state": 1}
    checkpoint = Checkpoint()
    TruncatedGaussianVNCE(**choices).fit(table, on_step=lambda _: True, checkpoint=checkpoint)
    checkpoint = Checkpoint.load(checkpoint.dump())
    with pytest.raises(UnusableCheckpointError, match="another table, options or seed"):
        TruncatedGaussianVNCE(**choices | changes).fit(factor * table, checkpoint=checkpoint)


def test_a_checkpoint_serves_one_fit(table: np.ndarray) -> None:
    checkpoint = Checkpoint()
    estimator = TruncatedGaussianVNCE(penalty=0.5, linear="zero", random_state=1)
    estimator.fit(table, on_step=lambda _: True, checkpoint=checkpoint)
    with pytest.raises(UnusableCheckpointError, match="has served a fit"):
        estimator.fit(table, checkpoint=checkpoint)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + b"\0" * 18, b"x" * 1000])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(UnusableCheckpointError):
        Checkpoint.load(content)


def test_a_checkpoint_with_any_byte_changed_or_cut_off_is_refused() -> None:
    checkpoint = Checkpoint()
    checkpoint.once(lambda: torch.arange(3))
    whole = checkpoint.dump()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 1
        for damaged in (bytes(changed), whole[:position]):
            with pytest.raises(UnusableCheckpointError):
                Checkpoint.load(damaged)
