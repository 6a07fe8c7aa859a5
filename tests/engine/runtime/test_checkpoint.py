"""A fit that was interrupted goes on from its checkpoint, and ends where it would have ended."""

from typing import Any

import numpy as np
import pytest
import torch

from vnce_engine.estimators.truncated_gaussian import TruncatedGaussianNCE, TruncatedGaussianVNCE
from vnce_engine.runtime.checkpoint import Checkpoint, RunEntry, UnusableCheckpointError
from vnce_engine.runtime.reports import FitStep
from vnce_engine.selection import stability

TOLERANCE = 3e-3


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    """Return 300 rows of 5 columns with a quarter of the cells missing."""
    rng = np.random.default_rng(5)
    table = np.abs(rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5)))
    table[rng.random(table.shape) < 0.25] = np.nan
    return table


class Interrupter:
    """Stops a fit at its n-th step and keeps the checkpoint that it had then."""

    def __init__(self, at_step: int) -> None:
        self.steps_left = at_step
        self.stored = b""

    def __call__(self, step: FitStep) -> bool:
        assert step.checkpoint is not None
        self.steps_left -= 1
        self.stored = step.checkpoint.dump()
        return self.steps_left < 0


def num_steps(fit: Any) -> int:
    steps: list[FitStep] = []
    fit(on_step=lambda step: steps.append(step))
    return len(steps)


def assert_alike(resumed: Any, whole: Any) -> None:
    """Assert that all choices are the same and that estimates differ by the tolerance at most."""
    assert resumed.linear_choice_ == whole.linear_choice_
    assert resumed.penalty_ == whole.penalty_
    assert resumed.penalty_path_ == whole.penalty_path_
    assert resumed.penalty_relaxation_ == whole.penalty_relaxation_
    assert resumed.status_ == whole.status_
    scale = np.sqrt(np.outer(np.diag(whole.precision_), np.diag(whole.precision_)))
    # A cycle's change below the tolerance leaves a distance to the fixed point of about as much at
    # each of the two ends, whatever the rate at which cycles converge: 1/2 or better here.
    assert np.abs((resumed.precision_ - whole.precision_) / scale).max() < 4 * TOLERANCE
    if whole.stability_ is not None:
        np.testing.assert_array_equal(resumed.stability_.inclusion, whole.stability_.inclusion)


L1 = {"penalty_kind": "l1", "linear": "zero"}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"penalty": 0.5, "linear": "zero"}, id="fixed"),
        pytest.param({}, id="held-out", marks=pytest.mark.slow),
        pytest.param({**L1, "selection": "ebic"}, id="ebic", marks=pytest.mark.slow),
        pytest.param(
            {**L1, "selection": "stability", "n_subsamples": 6},
            id="stability",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_fit_interrupted_anywhere_ends_where_it_would_have(
    table: np.ndarray, options: dict[str, Any]
) -> None:
    def fit(**how: Any) -> TruncatedGaussianVNCE:
        return TruncatedGaussianVNCE(random_state=1, tol=TOLERANCE, **options).fit(table, **how)

    whole = fit()
    total = num_steps(fit)
    for at_step in np.linspace(0, total - 1, 5, dtype=int):
        interrupter = Interrupter(int(at_step))
        assert fit(on_step=interrupter).status_ == "cancelled"
        checkpoint = Checkpoint.load(interrupter.stored)
        steps_again = 0

        def count(step: FitStep) -> None:
            nonlocal steps_again
            steps_again += 1

        resumed = fit(checkpoint=checkpoint, on_step=count)
        assert_alike(resumed, whole)
        if at_step > total // 2:
            assert checkpoint.num_taken > 0
            assert steps_again < total


@pytest.mark.slow
def test_a_fit_that_is_interrupted_again_and_again_ends_too(table: np.ndarray) -> None:
    whole = TruncatedGaussianVNCE(random_state=1).fit(table)
    checkpoint = Checkpoint()
    attempts = 0
    while True:
        attempts += 1
        assert attempts < 100
        interrupter = Interrupter(30)
        fitted = TruncatedGaussianVNCE(random_state=1).fit(
            table, on_step=interrupter, checkpoint=checkpoint
        )
        if fitted.status_ != "cancelled":
            break
        checkpoint = Checkpoint.load(interrupter.stored)
    assert attempts > 2
    assert_alike(fitted, whole)


@pytest.mark.parametrize("is_complete", [False, True], ids=["holes", "complete"])
def test_the_papers_recipe_cut_anywhere_ends_at_the_same_bits(
    table: np.ndarray, is_complete: bool
) -> None:
    rows = np.where(np.isnan(table), 0.5, table)[:150] if is_complete else table[:150]

    def fit(**how: Any) -> TruncatedGaussianVNCE:
        estimator = TruncatedGaussianVNCE(preset="paper", max_iter=16, random_state=1)
        return estimator.fit(rows, **how)

    stored: list[bytes] = []
    whole = fit(on_step=lambda step: stored.append(step.checkpoint.dump()))
    total = len(stored)
    # Three cycles, and a fourth whose M-step has one iteration.
    for cut in (0, 1, 5, total // 2, total // 2 + 1, total - 2, total - 1):
        checkpoint = Checkpoint.load(stored[cut])
        resumed = fit(checkpoint=checkpoint)
        np.testing.assert_array_equal(resumed.precision_, whole.precision_)
        assert resumed.log_partition_ == whole.log_partition_
        assert resumed.objective_path_ == whole.objective_path_
        assert resumed.diagnostics_ == whole.diagnostics_
        assert (resumed.n_iter_, resumed.status_) == (whole.n_iter_, whole.status_)
        assert checkpoint.num_taken > 1  # where the cycle began, and evaluations since


def test_nce_goes_on_too(table: np.ndarray) -> None:
    def fit(**how: Any) -> TruncatedGaussianNCE:
        return TruncatedGaussianNCE(random_state=1, tol=TOLERANCE).fit(table, **how)

    interrupter = Interrupter(num_steps(fit) // 2)
    fit(on_step=interrupter)
    checkpoint = Checkpoint.load(interrupter.stored)
    assert_alike(fit(checkpoint=checkpoint), fit())
    assert checkpoint.num_taken > 0


def test_a_fit_without_an_interruption_is_the_same_with_an_empty_checkpoint(
    table: np.ndarray,
) -> None:
    one, other = (
        TruncatedGaussianVNCE(random_state=1).fit(table, checkpoint=checkpoint)
        for checkpoint in (None, Checkpoint())
    )
    np.testing.assert_array_equal(one.precision_, other.precision_)


def entry(number: float, status: str | None) -> RunEntry:
    return RunEntry(
        augmented=torch.full((2, 2), number),
        next_start=torch.zeros(2, 2),
        objective_path=(1.0, number),
        num_cycles=3,
        noise_at=torch.ones(2, 2),
        status=status,
    )


def test_a_checkpoint_is_read_back_as_it_was_written() -> None:
    checkpoint = Checkpoint()
    assert checkpoint.begin_run() is None
    checkpoint.note_run(entry(1.0, None))
    checkpoint.note_run(entry(2.0, "converged"))
    checkpoint.value(lambda: torch.arange(3))
    assert checkpoint.begin_run() is None
    checkpoint.note_run(entry(3.0, "converged"))
    again = Checkpoint.load(Checkpoint.load(checkpoint.dump()).dump())
    first = again.begin_run()
    assert first is not None
    assert (first.status, first.num_cycles, first.objective_path) == ("converged", 3, (1.0, 2.0))
    assert torch.equal(first.augmented, torch.full((2, 2), 2.0))
    again.note_run(first)
    assert torch.equal(again.value(lambda: torch.zeros(1)), torch.arange(3))
    last = again.begin_run()
    assert last is not None
    assert last.status is None  # nothing comes after it, so that it goes on
    assert again.num_taken == 3


@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 5, 5)])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float64])
def test_tensors_of_every_kind_come_back_as_they_were(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    value = torch.randint(2, shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    checkpoint = Checkpoint()
    checkpoint.value(lambda: value)
    back = Checkpoint.load(checkpoint.dump()).value(lambda: torch.zeros(0))
    assert (back.dtype, back.shape) == (dtype, shape)
    assert torch.equal(back, value)


def test_graphs_take_a_bit_a_pair() -> None:
    checkpoint = Checkpoint()
    checkpoint.value(lambda: torch.ones(12, 100, 100, dtype=torch.bool))
    assert len(checkpoint.dump()) < 12 * 100 * 100 / 8 + 2_000


class Count:
    """A loop that counts, and notes how far it has come."""

    def __init__(self) -> None:
        self.number = torch.tensor(0)

    def state(self) -> list[torch.Tensor]:
        return [self.number]

    def restore(self, state: list[torch.Tensor]) -> None:
        (self.number,) = state


def test_a_loop_goes_on_from_its_last_step_with_the_values_since() -> None:
    checkpoint, outer, inner = Checkpoint(), Count(), Count()
    end_outer = checkpoint.begin_loop(outer)
    checkpoint.value(lambda: torch.tensor(10.0))
    outer.number = torch.tensor(1)
    end_outer()
    size = len(checkpoint.dump())
    end_inner = checkpoint.begin_loop(inner)
    checkpoint.value(lambda: torch.tensor(20.0))
    inner.number = torch.tensor(7)
    end_inner()
    checkpoint.value(lambda: torch.tensor(30.0))

    again = Checkpoint.load(Checkpoint.load(checkpoint.dump()).dump())
    outer, inner = Count(), Count()
    end_outer = again.begin_loop(outer)
    again.begin_loop(inner)
    assert (int(outer.number), int(inner.number)) == (1, 7)
    assert [float(again.value(lambda: torch.tensor(0.0))) for _ in range(2)] == [30.0, 0.0]
    assert again.num_taken == 3
    end_outer()  # with which all that was within the step goes
    assert len(again.dump()) == size


def test_runs_within_a_value_are_forgotten_once_it_is_there() -> None:
    checkpoint = Checkpoint()

    def compute() -> torch.Tensor:
        checkpoint.begin_run()
        checkpoint.note_run(entry(1.0, None))
        return torch.ones(1)

    checkpoint.value(compute)
    small = len(checkpoint.dump())
    for _ in range(20):
        checkpoint.value(compute)
    assert len(checkpoint.dump()) - small < 20 * 600


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
    interrupter = Interrupter(3)
    TruncatedGaussianVNCE(**choices).fit(table, on_step=interrupter)
    checkpoint = Checkpoint.load(interrupter.stored)
    with pytest.raises(UnusableCheckpointError, match="another table, options or seed"):
        TruncatedGaussianVNCE(**choices | changes).fit(factor * table, checkpoint=checkpoint)


def test_a_checkpoint_serves_one_fit(table: np.ndarray) -> None:
    checkpoint = Checkpoint()
    estimator = TruncatedGaussianVNCE(penalty=0.5, linear="zero", random_state=1)
    estimator.fit(table, checkpoint=checkpoint)
    with pytest.raises(UnusableCheckpointError, match="has served a fit"):
        estimator.fit(table, checkpoint=checkpoint)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + b"\0" * 18, b"x" * 1000])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(UnusableCheckpointError):
        Checkpoint.load(content)


def test_a_checkpoint_with_any_byte_changed_or_cut_off_is_refused() -> None:
    checkpoint = Checkpoint()
    checkpoint.value(lambda: torch.arange(3))
    whole = checkpoint.dump()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 1
        for damaged in (bytes(changed), whole[:position]):
            with pytest.raises(UnusableCheckpointError):
                Checkpoint.load(damaged)


@pytest.mark.slow
def test_half_samples_that_fail_keep_their_place(
    table: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some of the twelve fail, which ones is told by the first of their rows.
    halves: list[Any] = []

    def fail_some(setting: Any, sample: Any, *others: Any) -> torch.Tensor:
        halves.append(sample)
        if int(sample.data[0].owner[0]) in failing:
            raise stability._FailedSubsampleError("not this one")
        return graphs(setting, sample, *others)

    graphs = stability._graphs
    failing: set[int] = set()
    monkeypatch.setattr(stability, "_graphs", fail_some)

    def fit(**how: Any) -> TruncatedGaussianVNCE:
        choices = {**L1, "selection": "stability", "n_subsamples": 12, "random_state": 1}
        return TruncatedGaussianVNCE(**choices).fit(table, **how)

    fit()
    failing = {int(halves[at].data[0].owner[0]) for at in (1, 4)}
    stored: list[bytes] = []
    whole = fit(on_step=lambda step: stored.append(step.checkpoint.dump()))
    assert 2 <= whole.stability_.n_failed < whole.stability_.n_ok
    for content in stored[:: len(stored) // 4]:
        resumed = fit(checkpoint=Checkpoint.load(content))
        assert resumed.stability_.failures == whole.stability_.failures
        assert resumed.stability_.n_ok == whole.stability_.n_ok
        assert_alike(resumed, whole)
