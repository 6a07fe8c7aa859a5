"""Jobs in parts on the cores of this machine, without a service."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from service.results.outcome import Outcome
from service.results.parts_result import PartResult
from vnce_engine.runtime.reports import FitStep
from worker.cli.local_processes import in_processes
from worker.jobs.estimation import OnStep
from worker.jobs.parts import FinishedParts

Request = TypeVar("Request")


def finish_parts(
    run: Callable[[Request, OnStep], Outcome],
    requests: Sequence[Request],
    stage: str,
    on_step: OnStep,
) -> FinishedParts:
    """Return what came of parts that processes share, each of which leaves one file."""
    done: list[Outcome] = []
    for part in in_processes(partial(_run, run), requests):
        done.append(part)
        on_step(FitStep(stage, len(done) / len(requests), len(done), objective=None))
    contents = [artefact.content for part in done for artefact in part.artefacts]
    results = [PartResult.model_validate(part.document, from_attributes=True) for part in done]
    return FinishedParts(len(done), contents, results, failures=[])


def _run(run: Callable[[Request, OnStep], Outcome], request: Request) -> Outcome:
    return run(request, lambda step: None)
