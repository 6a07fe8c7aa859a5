"""A long fit goes on from its checkpoint, says so, and ends where it would have ended."""

from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from service.jobs.records import CheckpointRecord
from tests.faults.stack import Stack
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.faults]

TOLERANCE = 3e-3


@pytest.fixture
def long_choice(long_fit: Any) -> dict[str, Any]:
    """Return a job that chooses its linear term, and then fits, for some seconds."""
    estimator = {"kind": "vnce", "penalty": 1.0, "noise_ratio": 20, "tol": TOLERANCE}
    return {**long_fit, "estimator": estimator}


def test_a_killed_workers_fit_goes_on_from_its_checkpoint(stack: Stack, long_choice: Any) -> None:
    whole_id = stack.submit(long_choice)
    assert stack.wait(whole_id)["state"] == "succeeded"
    whole = stack.client.result(whole_id)
    assert whole["timing"]["resumed"] is False
    for name in ("worker-1", "worker-2"):
        stack.processes[name].kill()
    stack.start_worker("worker-3", VNCE_CHECKPOINT_SECONDS="0.2")

    job_id = stack.submit(long_choice)
    sizes: list[int] = []

    def has_grown_twice() -> bool:
        with stack.database.snapshot() as session:
            kept = session.scalar(
                select(CheckpointRecord.data).where(CheckpointRecord.job_id == job_id)
            )
        if kept is not None and len(kept) not in sizes:
            sizes.append(len(kept))
        return len(sizes) > 2

    wait_for(has_grown_twice, "three checkpoints")
    stack.busy_child().kill()
    job = stack.wait(job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)

    resumed = stack.client.result(job_id)
    assert resumed["timing"]["resumed"] is True
    assert resumed["linear"]["choice"] == whole["linear"]["choice"]
    K, expected = (np.array(result["precision"]) for result in (resumed, whole))
    scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    # Each of the two ends about the tolerance away from the same fixed point, or nearer.
    assert np.abs((K - expected) / scale).max() < 4 * TOLERANCE

    def is_gone() -> bool:
        with stack.database.snapshot() as session:
            return session.get(CheckpointRecord, job_id) is None

    wait_for(is_gone, "the checkpoint of an ended job to be removed")
