"""A part of an experiment that was interrupted goes on with the estimator that it was at."""

from typing import Any

import pytest

from service.jobs.specs.experiment import ExperimentPartSpec
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep
from worker.jobs.experiments import run_part
from worker.jobs.failures import FitCancelledError


@pytest.fixture
def part() -> ExperimentPartSpec:
    return ExperimentPartSpec.model_validate(
        {
            "kind": "experiment-part",
            "experiment": {
                "name": "graph-recovery",
                "graphs": ["ring"],
                "fractions": [0.3],
                "estimators": ["gaussian-em", "score-matching-mean"],
                "n_data_sets": 1,
            },
            "scale": "quick",
            "seed": 3,
            "part": 0,
            "label": "ring, 30% missing, data set 0",
            "tag": None,
        }
    )


def rows_of(part: ExperimentPartSpec, checkpoint: Checkpoint | None, on_step: Any) -> bytes:
    [rows] = run_part(part, checkpoint, on_step).artefacts
    return rows.content


@pytest.mark.slow
def test_a_part_goes_on_where_it_was_cut_and_begins_anew_with_anothers_checkpoint(
    part: ExperimentPartSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    steps: list[FitStep] = []
    whole = rows_of(part, None, steps.append)
    stored: list[bytes] = []

    def stop_at_the_second(step: FitStep) -> bool:
        assert step.checkpoint is not None
        stored.append(step.checkpoint.dump())
        return step.stage == "score-matching-mean"

    with pytest.raises(FitCancelledError):
        rows_of(part, None, stop_at_the_second)
    later: list[FitStep] = []
    assert rows_of(part, Checkpoint.load(stored[-1]), later.append) == whole
    assert len(later) < len(steps)

    another = part.model_copy(update={"seed": 4})
    again: list[FitStep] = []
    assert rows_of(another, Checkpoint.load(stored[-1]), again.append) == rows_of(
        another, None, lambda step: None
    )
    assert len(again) > len(later)
