"""The bootstrap of what `vnce fit` has estimated, on the cores of this machine."""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

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
from worker.cli.validation import validated
from worker.jobs.bootstrap import Estimated, PartRequest, parts_of, put_together, run_part
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
    for part in _in_processes(requests):
        done.append(part)
        on_step(FitStep(STAGE, len(done) / len(requests), len(done), objective=None))
    contents = [artefact.content for part in done for artefact in part.artefacts]
    results = [PartResult.model_validate(part.document, from_attributes=True) for part in done]
    finished = FinishedParts(len(done), contents, results, failures=[])
    return put_together(request, estimated, finished, on_step)


def _in_processes(requests: Sequence[PartRequest]) -> Iterator[Outcome]:
    """Yield the outcome of each part, in order."""
    pool = ProcessPoolExecutor(
        max_workers=min(len(requests), multiprocessing.cpu_count()),
        mp_context=multiprocessing.get_context("spawn"),
        # Ctrl-C is for this process to hear, which ends them.
        initializer=partial(signal.signal, signal.SIGINT, signal.SIG_IGN),
    )
    try:
        yield from pool.map(_run, requests)
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _run(request: PartRequest) -> Outcome:
    return run_part(request, lambda step: None)
