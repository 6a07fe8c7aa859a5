"""Fits compete for a choice; one that has not settled does not win it from one that has."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.contrastive.variational_em import Cycles
from vnce_engine.data.observations import Observations
from vnce_engine.optim.constraints import Constraints
from vnce_engine.penalties.penalty import Penalty, PenaltyKind
from vnce_engine.runtime.progress import Progress
from vnce_engine.runtime.reports import FitStatus
from vnce_engine.selection import held_out as selection
from vnce_engine.selection.ebic import choose_by_ebic
from vnce_engine.selection.held_out import choose_by_held_out_rows, choose_linear
from vnce_engine.selection.setting import Setting
from vnce_engine.simulate import ring_precision, sample_truncated_gaussian

Told = Callable[[Penalty, Constraints], FitStatus | None]


def ring_table(linear: float = 0.0, n: int = 300) -> np.ndarray:
    rng = np.random.default_rng(31)
    return sample_truncated_gaussian(ring_precision(5, rng), n, rng, linear=np.full(5, linear))


def setting(X: np.ndarray, kind: PenaltyKind) -> Setting:
    generator = torch.Generator().manual_seed(0)
    return Setting(Problem.prepare(Observations.from_array(X), 5, "sobol", generator), kind, False)


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Callable[[Told], None]:
    """Have runs of cycles say that they ended as a function of penalty and constraints says."""

    def end_as(told: Told) -> None:
        run = Cycles.run

        def told_run(
            self: Cycles, sample: Any, penalty: Penalty, constraints: Constraints, *rest: Any
        ) -> Any:
            status = run(self, sample, penalty, constraints, *rest)
            return told(penalty, constraints) or status

        monkeypatch.setattr(Cycles, "run", told_run)

    return end_as


@pytest.mark.parametrize(
    ("linear", "by_gain", "is_clear"), [(0.0, "zero", False), (4.0, "free", True)]
)
def test_of_two_models_the_one_whose_fit_settled_is_taken_unless_the_other_is_clearly_better(
    linear: float, by_gain: str, is_clear: bool, ending: Callable[[Told], None]
) -> None:
    table = setting(ring_table(linear), PenaltyKind.ADAPTIVE)
    is_free, evidence = choose_linear(table, Progress(None))
    choice = "free" if is_free else "zero"
    assert (choice, evidence.settled) == (by_gain, ("zero", "free"))
    assert (abs(evidence.gain) > 5 * evidence.standard_error) == is_clear

    other = "free" if by_gain == "zero" else "zero"
    ending(
        lambda _, constraints: (
            None if constraints.has_linear == (other == "free") else FitStatus.MAX_ITERATIONS
        )
    )
    is_free, evidence = choose_linear(table, Progress(None))
    choice = "free" if is_free else "zero"
    assert (choice, evidence.settled) == (by_gain if is_clear else other, (other,))
    assert (f"only the fit with {other} had converged" in evidence.rule) != is_clear

    ending(lambda _, constraints: FitStatus.MAX_ITERATIONS)
    is_free, evidence = choose_linear(table, Progress(None))
    choice = "free" if is_free else "zero"
    assert (choice, evidence.settled) == (by_gain, ())


def test_a_path_ends_at_a_strength_without_an_estimate_which_is_not_chosen(
    ending: Callable[[Told], None],
) -> None:
    table = setting(ring_table(n=2000), PenaltyKind.ADAPTIVE)
    grid = (3.0, 1.0, 0.3, 0.1)
    grids = [(PenaltyKind.ADAPTIVE, grid)]
    plain = choose_by_held_out_rows(table, grids, Progress(None))
    (chosen,) = [step.strength for step in plain.path if step.chosen]
    assert chosen < 3.0

    ending(lambda penalty, _: FitStatus.NON_FINITE if penalty.strength == chosen else None)
    choice = choose_by_held_out_rows(table, grids, Progress(None))
    assert choice.strength > chosen
    assert [step.strength for step in choice.path] == [s for s in grid if s >= chosen]
    assert choice.path[-1].criterion == -math.inf


def test_a_graph_whose_refit_has_not_settled_is_passed_over(
    ending: Callable[[Told], None],
) -> None:
    table = setting(ring_table(), PenaltyKind.L1)
    grid = (0.2, 0.05, 0.02)
    plain = choose_by_ebic(table, grid, 0.0, Progress(None))
    assert plain.is_settled
    assert plain.graph is not None

    def graph_is(penalty: Penalty, constraints: Constraints) -> FitStatus | None:
        is_refit = penalty.strength == 0 and constraints.graph is not None
        same = is_refit and torch.equal(constraints.graph, plain.graph)
        return FitStatus.MAX_ITERATIONS if same else None

    ending(graph_is)
    choice = choose_by_ebic(table, grid, 0.0, Progress(None))
    assert choice.strength != plain.strength
    assert choice.is_settled
    criteria = {step.strength: step.criterion for step in choice.path}
    assert criteria[choice.strength] > criteria[plain.strength]

    ending(lambda penalty, _: FitStatus.MAX_ITERATIONS if penalty.strength == 0 else None)
    choice = choose_by_ebic(table, grid, 0.0, Progress(None))
    assert (choice.strength, choice.is_settled) == (plain.strength, False)


def test_a_choice_among_fits_of_which_none_has_settled_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def message() -> str | None:
        model = TruncatedGaussianVNCE(penalties=[1.0, 0.3], random_state=0).fit(ring_table(4.0))
        assert model.converged_
        codes = {warning.code: warning.message for warning in model.warnings_}
        return codes.get("choice-not-settled")

    assert message() is None
    monkeypatch.setattr(selection, "_TRIAL_CYCLES", 1)
    monkeypatch.setattr(selection, "_MAX_CYCLES", 1)
    told = message()
    assert told is not None
    assert "choice of the linear term and the penalty may change" in told
