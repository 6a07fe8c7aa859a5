"""What every experiment keeps to, and what single ones show."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.engine.saves import fit_and_saves
from vnce_engine.experiments.coverage import Coverage
from vnce_engine.experiments.experiment import Experiment, Row
from vnce_engine.experiments.graph_recovery import GraphRecovery, compare, simulate
from vnce_engine.experiments.mixture_em import MixtureEm
from vnce_engine.experiments.mixture_population import MixturePopulation
from vnce_engine.experiments.recovery_estimators import ESTIMATORS
from vnce_engine.runtime.checkpoint import Checkpoint, UnusableCheckpointError
from vnce_engine.runtime.progress import FitCancelledError

SMALL: list[MixtureEm | MixturePopulation | GraphRecovery | Coverage] = [
    MixtureEm(num_rows=100, num_pairs=3),
    MixturePopulation(num_truths=6, sample_sizes=(50, 200), batch=4),
    GraphRecovery(
        fractions=(0.3,),
        num_data_sets=2,
        estimators=("nce-mean", "nce-zero"),
        num_columns=6,
        num_rows=120,
    ),
    Coverage(
        graphs=("random",),
        linears=("free",),
        sample_sizes=(80,),
        fractions=(0.2,),
        num_data_sets=3,
        num_columns=4,
        batch=2,
    ),
]


@cache
def last_rows(experiment: Experiment) -> tuple[Row, ...]:
    """Return the rows of an experiment's last part, which may be shorter than the others."""
    return experiment.run(len(experiment.parts()) - 1)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", SMALL, ids=lambda experiment: experiment.name)
def test_parts_give_the_same_plain_rows_at_every_call(experiment: Experiment) -> None:
    rows = last_rows(experiment)
    assert rows == experiment.run(len(experiment.parts()) - 1)
    assert json.loads(json.dumps(rows, allow_nan=False)) == [dict(row) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("experiment", SMALL, ids=lambda experiment: experiment.name)
def test_summaries_do_without_the_rows_of_failed_parts(experiment: Experiment) -> None:
    for table in experiment.summarise(last_rows(experiment)):
        assert all(len(row) == len(table.columns) for row in table.rows)
        json.dumps(table.rows, allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", SMALL, ids=lambda experiment: experiment.name)
def test_another_seed_gives_other_data(
    experiment: MixtureEm | MixturePopulation | GraphRecovery | Coverage,
) -> None:
    other = replace(experiment, seed=1)
    assert last_rows(other) != last_rows(experiment)


@pytest.mark.parametrize("experiment", SMALL, ids=lambda experiment: experiment.name)
def test_a_part_stops_when_it_is_told_to(experiment: Experiment) -> None:
    with pytest.raises(FitCancelledError):
        experiment.run(0, on_step=lambda step: True)


def test_the_objective_of_em_never_falls_and_the_bound_touches_it_after_each_e_step() -> None:
    experiment = MixtureEm(num_rows=300)
    steps, _ = experiment.summarise(experiment.run(0))
    lines = [dict(zip(steps.columns, row, strict=True)) for row in steps.rows]
    nce = np.array([line["nce"] for line in lines], dtype=float)
    assert (np.diff(nce) >= -1e-10).all()
    for line in lines:
        if line["kind"] == "E":
            assert line["vnce"] == pytest.approx(line["nce"], abs=1e-12)


def test_em_ends_where_the_nce_objective_is_largest() -> None:
    experiment = MixtureEm(num_rows=300)
    _, maxima = experiment.summarise(experiment.run(0))
    (_, theta_nce, nce), (_, theta_vnce, vnce) = maxima.rows
    # EM's steps shrink by a factor of about nine here (drawn in the figure), so eight leave 1e-7
    # of the first one's length; both searches stop at gradients of 1e-7.
    assert theta_vnce == pytest.approx(theta_nce, abs=1e-5)
    assert vnce == pytest.approx(nce, abs=1e-10)


def test_one_seed_gives_one_graph_whatever_the_share_of_missing_cells() -> None:
    truth, X = simulate("ring", 0.0, seed=3, num_rows=40)
    same_truth, holed = simulate("ring", 0.5, seed=3, num_rows=40)
    np.testing.assert_array_equal(truth, same_truth)
    np.testing.assert_array_equal(X[~np.isnan(holed)], holed[~np.isnan(holed)])
    assert np.isnan(holed).sum() == 400


def test_unknown_estimators_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"`estimators` must be among vnce, .*, got 'magic'"):
        GraphRecovery(estimators=("magic",))


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_scores_a_small_table(name: str) -> None:
    truth, X = simulate("ring", 0.0, seed=0, num_columns=5, num_rows=80)
    (line,) = compare(truth, X, (name,))
    assert line["reason"] is None
    for score in ("auc_abs", "auc_signed"):
        assert isinstance(line[score], float)


@pytest.mark.slow
def test_a_part_goes_on_with_the_estimator_at_hand() -> None:
    experiment = GraphRecovery(
        graphs=("ring",),
        fractions=(0.3,),
        num_data_sets=2,
        estimators=("score-matching-mean", "gaussian-em"),
        num_columns=5,
        num_rows=60,
    )

    def run(checkpoint: Checkpoint) -> Any:
        return replace(experiment, checkpoint=checkpoint).run(1)

    whole, stored = fit_and_saves(run, 6)
    for content in stored:
        checkpoint = Checkpoint.load(content)
        # Both estimators' searches end at their optimum, wherever they begin.
        for resumed, row in zip(run(checkpoint), whole, strict=True):
            assert resumed == {**row, "mse": pytest.approx(row["mse"], rel=1e-6)}
        assert checkpoint.num_taken > 0
    again = Checkpoint.load(stored[-1])
    assert run(again) == whole
    assert again.num_taken == len(experiment.estimators)
    with pytest.raises(UnusableCheckpointError):
        replace(experiment, checkpoint=Checkpoint.load(stored[0])).run(0)


@pytest.mark.slow
def test_a_refused_table_is_counted_and_says_why() -> None:
    # A row of five columns is complete with probability 1/32; the estimator wants six of them.
    experiment = GraphRecovery(
        graphs=("ring",),
        fractions=(0.5,),
        num_data_sets=1,
        estimators=("nce-mean", "nce-drop"),
        num_columns=5,
        num_rows=40,
    )
    rows = experiment.run(0)
    assert rows[1]["status"] == "refused"
    assert "complete rows" in str(rows[1]["reason"])
    assert rows[1]["auc_abs"] is None
    medians, _ = experiment.summarise(rows)
    columns = medians.columns.index("data_sets"), medians.columns.index("refused")
    assert [[row[i] for i in columns] for row in medians.rows] == [[1, 0], [0, 1]]


def test_seconds_are_those_of_the_clock() -> None:
    ticks = iter(range(100))
    experiment = GraphRecovery(
        estimators=("nce-mean",), num_columns=5, num_rows=60, clock=lambda: float(next(ticks))
    )
    (row,) = experiment.run(0)
    assert row["seconds"] == 1.0


def test_true_values_at_which_an_estimate_ran_away_have_no_slope_and_are_counted() -> None:
    errors = {0: (1.0, 0.1), 1: (2.0, 0.2), 2: (None, 0.3), 3: (4.0, 0.0)}
    rows = [
        {
            "truth": truth,
            "n": n,
            "estimator": estimator,
            "squared_error_theta": error,
            "squared_error_c": error,
            "is_local": 0,
            "local_share_of_starts": 0.0,
        }
        for truth, of_truth in errors.items()
        for n, error in zip((100, 1_000), of_truth, strict=True)
        for estimator in ("VNCE", "NCE")
        if estimator == "VNCE" or truth > 1
    ]
    _, slopes = MixturePopulation(sample_sizes=(100, 1_000)).summarise(rows)
    found = {line[0]: dict(zip(slopes.columns, line, strict=True)) for line in slopes.rows}
    assert found["VNCE"]["slope"] == pytest.approx(-1)
    assert (found["VNCE"]["truths"], found["VNCE"]["left_out"]) == (2, 2)
    assert (found["NCE"]["truths"], found["NCE"]["slope"], found["NCE"]["left_out"]) == (0, None, 2)
    assert "MLE" not in found


@pytest.mark.release
def test_the_error_of_all_estimators_falls_as_one_over_n() -> None:
    experiment = MixturePopulation(num_truths=60, sample_sizes=(100, 400, 1_600), batch=60, seed=2)
    _, slopes = experiment.summarise(experiment.run(0))
    for name, parameter, _, slope, se, left_out in slopes.rows:
        assert left_out == 0
        assert isinstance(slope, float)
        assert isinstance(se, float)
        assert abs(slope + 1) < 4 * se, (name, parameter, slope, se)
