"""Results out of the database are described as they were stored."""

import json
from pathlib import Path

import pytest

from service.jobs.records import JobRecord
from service.jobs.result_records import ResultRecord
from service.results.pages import describe_result

# As services of earlier releases have answered.
EARLIER = sorted((Path(__file__).parents[3] / "docs" / "reproduction").glob("*/result.json"))


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.parent.name)
def test_an_experiment_keeps_what_it_was_asked_for(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    job_id = document.pop("job_id")
    document |= {"files": []}
    asked = document["experiment"]
    # A choice that there is no more is left out, and is no fault.
    stored = ResultRecord(job_id=job_id, document={**document, "experiment": asked | {"gone": 1}})
    job = JobRecord(id=job_id, kind="experiment", ground_truth=None)
    assert describe_result(job, stored, []).model_dump(mode="json") == document | {"job_id": job_id}
