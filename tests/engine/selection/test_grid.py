"""A grid of one's own, a choice at its end, and tables in which nothing is to be found."""

import numpy as np
import pytest
import torch

from vnce_engine import TruncatedGaussianVNCE
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.penalties.penalty import PenaltyKind, weakest_safe_strength
from vnce_engine.runtime.progress import Progress
from vnce_engine.selection.grid import strengths
from vnce_engine.selection.setting import Setting


def warnings_of(model: TruncatedGaussianVNCE) -> dict[str, str]:
    return {warning.code: warning.message for warning in model.warnings_}


def independent_table(n: int = 60, d: int = 5) -> np.ndarray:
    return np.abs(np.random.default_rng(13).normal(size=(n, d)))


def test_a_grid_of_one_s_own_is_followed_from_strong_to_weak() -> None:
    model = TruncatedGaussianVNCE(
        linear="zero", penalty_kind="ridge", penalties=[0.3, 2.0, 0.9, 2.0], random_state=0
    ).fit(independent_table(200))
    path = [step.strength for step in model.penalty_path_]
    assert path[:3] == [2.0, 0.9, 0.3][: len(path)]
    assert min(path) <= model.penalty_ <= max(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["adaptive", "ridge", "l1"])
def test_wide_tables_end_at_an_end_of_a_short_grid_and_say_which(kind: str) -> None:
    # 40 columns and 22 rows: held-out rows are few, and so are three strengths.
    X = independent_table(22, 40)
    model = TruncatedGaussianVNCE(
        linear="zero", penalty_kind=kind, penalties=[0.5, 0.4, 0.3], random_state=0
    ).fit(X)
    path = model.penalty_path_
    assert [step.strength for step in path] == [0.5, 0.4, 0.3][: len(path)]
    assert all(np.isfinite(step.criterion) for step in path)
    message = warnings_of(model)["penalty-at-grid-end"]
    end = "strongest" if model.penalty_ == 0.5 else "weakest"
    assert model.penalty_ in (path[0].strength, path[-1].strength)
    assert f"{model.penalty_:g} is the {end} of {len(path)}" in message
    assert "penalties" in message or "no evidence" in message


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["held-out", "ebic", "stability"])
def test_independent_columns_give_no_edges_and_a_note_about_the_grid(selection: str) -> None:
    model = TruncatedGaussianVNCE(
        linear="zero",
        penalty_kind="l1",
        selection=selection,
        n_subsamples=10,
        edge_threshold=0.5,
        random_state=0,
    ).fit(independent_table())
    assert model.converged_
    assert len(model.edges_) == 10
    assert not any(edge.selected for edge in model.edges_)
    steps = model.penalty_path_
    chosen = [i for i, step in enumerate(steps) if step.chosen]
    at_end = chosen[0] in (0, len(steps) - 1)
    assert ("penalty-at-grid-end" in warnings_of(model)) == at_end


def test_an_edge_with_no_interaction_is_not_selected_at_a_threshold_of_zero() -> None:
    model = TruncatedGaussianVNCE(
        linear="zero", penalty_kind="l1", penalty=2.0, edge_threshold=0.0, random_state=0
    ).fit(independent_table())
    assert all(edge.precision == 0 for edge in model.edges_)
    assert not any(edge.selected for edge in model.edges_)


def setting(num_rows: int, kind: PenaltyKind, d: int = 5) -> Setting:
    observations = Observations.from_array(independent_table(num_rows, d))
    problem = Problem.prepare(observations, 3, "sobol", torch.Generator().manual_seed(0))
    return Setting(problem, kind, False)


def test_the_engine_s_own_grid_reaches_strengths_in_proportion_to_the_rows() -> None:
    short, long = (strengths(setting(n, PenaltyKind.RIDGE), Progress(None)) for n in (60, 5000))
    assert max(short) == 3.0
    assert 15.0 <= max(long) < 30.0
    assert long[-len(short) :] == short


def test_an_l1_grid_starts_where_the_last_edge_goes_and_reaches_less_where_rows_are_many() -> None:
    few, many = (strengths(setting(n, PenaltyKind.L1), Progress(None)) for n in (100, 2500))
    for grid in (few, many):
        assert list(grid) == sorted(grid, reverse=True)
        ratios = np.array(grid[1:]) / np.array(grid[:-1])
        np.testing.assert_allclose(ratios, ratios[0])
    assert few[-1] / few[0] == pytest.approx(0.1)
    assert many[-1] / many[0] == pytest.approx(1.6 / 50)


def test_an_l1_grid_stays_where_a_wide_table_is_safe() -> None:
    grid = strengths(setting(12, PenaltyKind.L1, d=6), Progress(None))
    assert min(grid) >= weakest_safe_strength(PenaltyKind.L1)


def test_an_adaptive_path_of_a_short_table_ends_early_where_no_matrix_is_formed() -> None:
    """44 columns have 1,035 parameters; with more rows than that the path goes on."""
    narrow, wide, long = (
        strengths(setting(n, PenaltyKind.ADAPTIVE, d=d), Progress(None))
        for n, d in ((150, 43), (150, 44), (1_100, 44))
    )
    assert wide[-1] == 0.3
    assert narrow[-1] == 0.03
    assert long[-1] == 0.01
