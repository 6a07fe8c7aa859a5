"""The bootstrap of what `vnce fit` has estimated, on the cores of this machine."""

import pyarrow as pa
import pydantic

from service.jobs.specs.base import planned
from service.jobs.specs.bootstrap import BootstrapSpec
from service.jobs.specs.estimation import EstimationSpec
from service.results.outcome import Outcome
from service.results.parts_result import PartResult
from service.results.schemas import EstimationResult
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.fitted import to_array
from worker.cli.local_processes import in_processes
from worker.cli.validation import validated
from worker.jobs.bootstrap import PartRequest, parts_of, put_together, run_part
from worker.jobs.estimated import Estimated
from worker.jobs.estimation import OnStep
from worker.jobs.parts import FinishedParts

STAGE = "resamples"


def bootstrap_spec(n_resamples: int, seed: int | None) -> BootstrapSpec:
    """Return what is asked for; raises `ProblemError` for a number of resamples beyond bounds."""
    body = {"kind": "bootstrap", "job_id": "job_local", "n_resamples": n_resamples, "seed": seed}
    return validated(pydantic.TypeAdapter(BootstrapSpec), body)


def bootstrap_here(
    request: BootstrapSpec,
    spec: EstimationSpec,
    outcome: Outcome,
    table: pa.Table,
    on_step: OnStep,
) -> Outcome:
    """Fit resamples of the `table` that an estimation's `outcome` is of, as a service's job would.

    Processes, one a core, share the parts; they end with this one.
    """
    assert isinstance(outcome.document, EstimationResult)
    estimated = Estimated.of(spec, outcome.document, outcome.edges)
    cells = to_array(table.select(planned(spec.variables)))
    requests = [PartRequest(part, estimated, cells, None) for part in parts_of(request)]
    done: list[Outcome] = []
    for part in in_processes(_run, requests):
        done.append(part)
        on_step(FitStep(STAGE, len(done) / len(requests), len(done), objective=None))
    contents = [artefact.content for part in done for artefact in part.artefacts]
    results = [PartResult.model_validate(part.document, from_attributes=True) for part in done]
    finished = FinishedParts(len(done), contents, results, failures=[])
    return put_together(request, estimated, finished, on_step)


def _run(request: PartRequest) -> Outcome:
    return run_part(request, lambda step: None)
