"""What a claimed job computes on, read from the database."""

from service.database import Database
from service.datasets import repository
from service.jobs.leases import Claim
from service.results.schemas import DatasetIdentity
from worker.estimation import EstimationRequest


def load_request(database: Database, claim: Claim) -> EstimationRequest:
    """Return the job's data and choices; its true graph is the one it was submitted with.

    Raises `LookupError` if the data set is gone, which the API does not allow while a job needs it.
    """
    with database.snapshot() as session:
        stored = repository.load_table(session, claim.spec.dataset_id)
    return EstimationRequest(
        spec=claim.spec,
        table=stored.table,
        censored=stored.cells,
        ground_truth=claim.ground_truth,
        dataset=DatasetIdentity(id=stored.dataset_id, name=stored.name, sha256=stored.sha256),
    )
