"""A simulated data set can be learnt from, or the job says that it cannot."""

from typing import Any

import pytest
from pydantic import ValidationError

from service.datasets.options import ReadLimits
from service.http.problems import Problem, ProblemCode
from service.jobs.specs.simulation import SimulationSpec
from service.settings import Settings
from worker.jobs.failures import JobFailedError
from worker.jobs.simulation import simulate

LIMITS = ReadLimits.from_settings(Settings())


def body(**choices: Any) -> dict[str, Any]:
    return {"kind": "simulation", "graph": "ring", "n_variables": 4, "n_rows": 50, **choices}


def failure(**choices: Any) -> Problem:
    """Return why the simulation, which the API accepts, has no result."""
    spec = SimulationSpec.model_validate(body(seed=1, name="ring", **choices))
    with pytest.raises(JobFailedError) as failed:
        simulate(spec, LIMITS, lambda step: False)
    return failed.value.problem


@pytest.mark.parametrize("fraction", [0.965, 0.9999])
def test_so_few_cells_that_some_column_must_be_empty_are_refused_at_submission(
    fraction: float,
) -> None:
    # 4 columns need 2 cells each, and of 200 cells 7 are left, or none.
    with pytest.raises(ValidationError, match="4 columns need 2 each at least"):
        SimulationSpec.model_validate(body(missing_fraction=fraction))
    SimulationSpec.model_validate(body(missing_fraction=0.96))


def test_fewer_rows_than_any_fit_takes_are_refused_at_submission() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 6"):
        SimulationSpec.model_validate(body(n_rows=5))


def test_columns_that_the_holes_leave_without_two_values_end_the_job_and_are_named() -> None:
    # 8 of 200 cells: two for each of four columns only by rare luck.
    problem = failure(missing_fraction=0.96)
    assert problem.code is ProblemCode.INCOMPATIBLE_MODEL
    assert "smaller `missing_fraction`" in problem.detail
    named = [item.column for item in problem.errors if item.column]
    assert named
    assert set(named) <= {"x1", "x2", "x3", "x4"}


def test_too_few_rows_with_a_cell_end_the_job() -> None:
    # 7 cells are left in 6 rows of 3, and some seeds leave a row without any.
    def messages(seed: int) -> list[str]:
        spec = SimulationSpec.model_validate(
            body(n_variables=3, n_rows=6, missing_fraction=0.6, seed=seed, name="r")
        )
        try:
            simulate(spec, LIMITS, lambda step: False)
        except JobFailedError as failed:
            return [item.message for item in failed.problem.errors]
        return []

    said = [message for seed in range(10) for message in messages(seed)]
    assert any("6 rows with a cell are needed" in message for message in said)


def test_a_table_with_something_in_every_column_is_made() -> None:
    spec = SimulationSpec.model_validate(body(missing_fraction=0.5, seed=1, name="ring"))
    outcome = simulate(spec, LIMITS, lambda step: False)
    assert outcome.dataset is not None
    assert outcome.document.model_dump()["n_missing"] == 100
