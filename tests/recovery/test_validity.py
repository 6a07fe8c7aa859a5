"""The benchmark of validity judges as its page says, and goes on where it was cut off."""

from pathlib import Path

import numpy as np

from benchmarks.validity import one_answer, truth_recovered
from benchmarks.validity.measurements import Line, Measurement, Results, Table, troubles
from benchmarks.validity.simulated import DEFAULT_GRAPHS, chain


def test_a_measurement_in_the_file_is_not_run_again(tmp_path: Path):
    calls = []
    measurement = Measurement("cell", 0, "vnce", lambda: calls.append(0) or {"x": [1.0]})
    path = tmp_path / "lines.csv"
    Results(path).measure("part", [measurement])
    again = Results(path)
    again.measure("part", [measurement])
    assert len(calls) == 1
    assert again.of("part") == [Line("part", "cell", 0, "vnce", {"x": [1.0]})]


def test_an_exception_is_a_line_and_a_finding(tmp_path: Path):
    results = Results(tmp_path / "lines.csv")
    results.measure("part", [Measurement("cell", 0, "vnce", lambda: 1 / 0)])
    (row,) = troubles(results.of("part")).rows
    assert row[-1] == "ZeroDivisionError: division by zero"


def test_answers_alike_to_the_bit_are_one_answer_and_others_are_not():
    rng = np.random.default_rng(0)
    fresh = rng.normal(size=(20, 3))
    assert _met(fresh, [[0.5, 0.0, 0.1]] * 4) == "yes"
    # Seeds that spread like samples: SD over seeds is one sampling standard error.
    assert _met(fresh, [list(row) for row in fresh[:8]]) == "**no**"


def test_a_bias_of_many_standard_errors_is_not_met_and_none_is():
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.normal(size=(10, 5))
    unbiased = noise - noise.mean(axis=0)
    assert _bias_met(unbiased) == "yes"
    assert _bias_met(unbiased + 0.5) == "**no**"


def test_every_simulated_network_is_positive_definite_and_its_chain_as_correlated_as_named():
    for make in DEFAULT_GRAPHS.values():
        assert np.linalg.eigvalsh(make(np.random.default_rng(0)).precision)[0] > 0
    covariance = np.linalg.inv(chain(0.95).precision)
    assert np.isclose(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]), 0.95)


def _met(fresh: np.ndarray, seeds: list[list[float]]) -> object:
    def lines(method: str, answers: list[list[float]]) -> list[Line]:
        return [
            Line("one-answer", "t", i, method, {"pc": pc, "selected": [1, 0, 0]})
            for i, pc in enumerate(answers)
        ]

    table = _only(
        one_answer.tables([*lines("seed", seeds), *lines("resample", [list(row) for row in fresh])])
    )
    return table.rows[0][-1]


def _bias_met(errors: np.ndarray) -> object:
    lines = [
        Line("truth", "truncated", i, "vnce", {"errors": list(row), "edge_ratio": 1.0})
        for i, row in enumerate(errors)
    ]
    return next(iter(truth_recovered.tables(lines))).rows[0][-1]


def _only(tables: object) -> Table:
    (table,) = tables
    return table
