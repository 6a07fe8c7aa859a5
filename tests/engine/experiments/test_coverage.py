"""Coverage: what is counted of a table, and what the means over tables are."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.engine.saves import fit_and_saves
from vnce_engine.experiments.coverage import GRAPHS, Coverage, judge, simulate
from vnce_engine.experiments.experiment import Row
from vnce_engine.inference.result import Edge, Verdict
from vnce_engine.runtime.checkpoint import Checkpoint

NUM_COLUMNS = 4
# Of the six pairs of four columns three are edges.
TRUTH = np.array([[1.0, 0.5, 0.3, 0.0], [0.5, 1, 0, 0], [0.3, 0, 1, -0.2], [0.0, 0, -0.2, 1]])
INTERVALS = {
    (0, 1): (0.3, 0.6, Verdict.PRESENT),
    (0, 2): (0.4, 0.6, Verdict.PRESENT),  # misses .3
    (2, 3): (-0.3, 0.1, Verdict.UNDECIDED),
    (0, 3): (-0.05, 0.05, Verdict.ABSENT),
    (1, 2): (0.1, 0.3, Verdict.PRESENT),  # misses 0
    (1, 3): (-0.2, 0.1, Verdict.UNDECIDED),
}


def edge(pair: tuple[int, int], verdict: Verdict | None) -> Edge:
    lower, upper, _ = INTERVALS[pair]
    return Edge(
        *pair,
        0.0,
        0.0,
        0.0,
        False,
        9,
        lower=lower,
        upper=upper,
        standard_error=0.1,
        verdict=verdict,
    )


def test_pairs_are_counted_by_interval_and_verdict() -> None:
    counts = judge(TRUTH, [edge(pair, verdict) for pair, (_, _, verdict) in INTERVALS.items()])
    assert counts == {
        "pairs": 6,
        "edges": 3,
        "others": 3,
        "edges_covered": 2,
        "others_covered": 2,
        "found": 3,
        "true": 2,
        "false": 1,
        "absent_others": 1,
        "undecided": 2,
        "standard_error": pytest.approx(0.1),
    }


def test_a_fit_without_intervals_counts_as_one_without() -> None:
    experiment = Coverage(graphs=("ring",), linears=("zero",), sample_sizes=(9,), fractions=(0.0,))
    known, unknown = (
        judge(TRUTH, [edge(pair, None if none else found[2]) for pair, found in INTERVALS.items()])
        for none in (False, True)
    )
    cell = {
        "graph": "ring",
        "linear": "zero",
        "n": 9,
        "missing": 0.0,
        "linear_found": 1,
        "seconds": None,
    }
    rows: list[Row] = [{**cell, **counts} for counts in (known, unknown)]
    coverage, discoveries = (
        dict(zip(table.columns, table.rows[0], strict=True)) for table in experiment.summarise(rows)
    )
    assert (coverage["tables"], coverage["without"]) == (1, 1)
    assert (coverage["edges"], coverage["edges_se"]) == (pytest.approx(2 / 3), None)
    assert discoveries["false"] == pytest.approx(1 / 3)


def test_where_no_edge_is_found_none_is_false_and_a_table_without_edges_has_no_power() -> None:
    experiment = Coverage(graphs=("ring",), linears=("zero",), sample_sizes=(9,), fractions=(0.0,))
    cell = {
        "graph": "ring",
        "linear": "zero",
        "n": 9,
        "missing": 0.0,
        "linear_found": 0,
        "seconds": 1.0,
    }
    nothing = {pair: edge(pair, Verdict.UNDECIDED) for pair in INTERVALS}
    rows: list[Row] = [
        {**cell, **judge(TRUTH, list(nothing.values()))},
        {**cell, **judge(np.eye(NUM_COLUMNS), list(nothing.values()))},
    ]
    _, discoveries = experiment.summarise(rows)
    line = dict(zip(discoveries.columns, discoveries.rows[0], strict=True))
    assert (line["false"], line["false_se"], line["undecided"]) == (0.0, 0.0, 1.0)
    assert (line["power"], line["power_se"]) == (0.0, None)  # of the one table that has edges


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_data_set_has_one_graph_at_every_size_and_one_table_at_every_share(graph: str) -> None:
    def drawn(num_rows: int, fraction: float) -> Any:
        return simulate(graph, "free", num_rows, fraction, 5, np.random.default_rng(3))

    (truth, X), (same, masked), (also_same, _) = drawn(40, 0.0), drawn(40, 0.5), drawn(70, 0.0)
    np.testing.assert_array_equal(truth, same)
    np.testing.assert_array_equal(truth, also_same)
    np.testing.assert_array_equal(X[~np.isnan(masked)], masked[~np.isnan(masked)])
    assert np.isnan(masked).sum() == 100
    assert (np.linalg.eigvalsh(truth) > 0).all()


@pytest.mark.slow
def test_a_part_goes_on_with_the_table_at_hand() -> None:
    experiment = Coverage(
        graphs=("ring",),
        linears=("zero",),
        sample_sizes=(60,),
        fractions=(0.0,),
        num_data_sets=3,
        num_columns=3,
    )

    def run(checkpoint: Checkpoint) -> Any:
        return replace(experiment, checkpoint=checkpoint).run(0)

    whole, stored = fit_and_saves(run, 3)
    again = Checkpoint.load(stored[-1])
    assert run(again) == whole
    assert again.num_taken >= experiment.num_data_sets - 1
