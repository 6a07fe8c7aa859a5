"""Whether two networks that were estimated here differ, on this machine's cores."""

import pyarrow as pa
import pydantic

from service.jobs.specs.contrastive import ContrastiveSpec
from service.jobs.specs.difference import DifferenceSpec
from service.jobs.specs.estimation import EstimationSpec
from service.results.outcome import Outcome
from service.results.schemas import EstimationResult
from worker.cli.client import JsonObject
from worker.cli.local_parts import finish_parts
from worker.cli.validation import validated
from worker.jobs.difference import PartRequest, parts_of, put_together, run_part
from worker.jobs.difference_sides import Sides, groups_of
from worker.jobs.estimated import Estimated
from worker.jobs.estimation import OnStep

STAGE = "permutations"
# Of the networks' own results, by which the difference of two files names them.
FOLDERS = ("first", "second")
_JOBS = ("job_id", "other_job_id")


def difference_spec(spec: EstimationSpec, by: str, n_permutations: int) -> DifferenceSpec:
    """Return what is asked for of an estimation; raises `ProblemError` beyond bounds."""
    body = {
        "kind": "difference",
        "job_id": "job_local",
        "by": by,
        "n_permutations": n_permutations,
        "seed": spec.seed,
    }
    if isinstance(spec.estimator, ContrastiveSpec):
        body["fdr"] = spec.estimator.fdr
    return validated(pydantic.TypeAdapter(DifferenceSpec), body)


def spec_of_files(spec: EstimationSpec, asked: JsonObject) -> DifferenceSpec:
    """Return what is `asked` for of two files' estimations; raises `ProblemError` beyond bounds."""
    adapter = pydantic.TypeAdapter(DifferenceSpec)
    request = validated(adapter, asked | dict(zip(_JOBS, FOLDERS, strict=True)))
    decided = {"n_permutations": request.n_permutations or 0, "seed": spec.seed}
    return request.model_copy(update=decided)


def difference_here(
    request: DifferenceSpec,
    spec: EstimationSpec,
    outcome: Outcome,
    table: pa.Table,
    on_step: OnStep,
) -> Outcome:
    """Compare groups of the `table` that an `outcome` is of, as a service's job would."""
    assert isinstance(outcome.document, EstimationResult)
    assert request.by is not None
    estimated = Estimated.of(spec, outcome.document, outcome.edges)
    sides = groups_of(estimated, table, request.by)
    return compare_sides(request, sides, on_step)


def compare_sides(request: DifferenceSpec, sides: Sides, on_step: OnStep) -> Outcome:
    """Compare two networks as a service's job would."""
    requests = [PartRequest(part, sides, None) for part in parts_of(request)]
    finished = finish_parts(run_part, requests, STAGE, on_step)
    return put_together(request, sides, finished, on_step)
