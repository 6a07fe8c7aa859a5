"""The bootstrap of what `vnce fit` has estimated, on the cores of this machine."""

import pyarrow as pa
import pydantic

from service.jobs.specs.base import planned
from service.jobs.specs.bootstrap import BootstrapSpec
from service.jobs.specs.estimation import EstimationSpec
from service.results.outcome import Outcome
from service.results.schemas import EstimationResult
from worker.artefacts.fitted import cells_and_clusters
from worker.cli.local_parts import finish_parts
from worker.cli.validation import validated
from worker.jobs.bootstrap import PartRequest, parts_of, put_together, run_part
from worker.jobs.estimated import Estimated
from worker.jobs.estimation import OnStep

STAGE = "resamples"


def bootstrap_spec(n_resamples: int, n_subsets: int, seed: int | None) -> BootstrapSpec:
    """Return what is asked for; raises `ProblemError` for numbers beyond bounds."""
    body = {
        "kind": "bootstrap",
        "job_id": "job_local",
        "n_resamples": n_resamples,
        "n_subsets": n_subsets,
        "seed": seed,
    }
    return validated(pydantic.TypeAdapter(BootstrapSpec), body)


def bootstrap_here(
    request: BootstrapSpec,
    spec: EstimationSpec,
    outcome: Outcome,
    table: pa.Table,
    on_step: OnStep,
) -> Outcome:
    """Fit resamples of the `table` that an `outcome` is of, as a service's job would."""
    assert isinstance(outcome.document, EstimationResult)
    estimated = Estimated.of(spec, outcome.document, outcome.edges)
    cells, clusters = cells_and_clusters(spec, planned(spec.variables), table)
    requests = [PartRequest(part, estimated, cells, clusters, None) for part in parts_of(request)]
    finished = finish_parts(run_part, requests, STAGE, on_step)
    return put_together(request, estimated, finished, on_step)
