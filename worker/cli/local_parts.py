"""Jobs in parts on the cores of this machine, without a service."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from service.http.problems import Problem
from service.results.outcome import Outcome
from service.results.parts_result import PartFailureRead, PartResult
from vnce_engine.runtime.reports import FitStep
from worker.cli.local import LOCAL
from worker.cli.local_processes import in_processes
from worker.jobs.estimation import OnStep
from worker.jobs.failures import JobFailedError
from worker.jobs.parts import FinishedParts


class _PartSpec(Protocol):
    @property
    def label(self) -> str: ...


class PartRequest(Protocol):
    """What a part is computed from."""

    @property
    def spec(self) -> _PartSpec:
        """What it is asked for."""


Request = TypeVar("Request", bound=PartRequest)


def finish_parts(
    run: Callable[[Request, OnStep], Outcome],
    requests: Sequence[Request],
    stage: str,
    on_step: OnStep,
    document: type[PartResult] = PartResult,
) -> FinishedParts:
    """Return what came of parts that processes share, as the database has it of a service's."""
    files, results, failures = [], [], []
    for number, part in enumerate(in_processes(partial(_run, run), requests), start=1):
        if isinstance(part, Problem):
            label = requests[number - 1].spec.label
            failures.append(PartFailureRead(job_id=LOCAL, label=label, error=part))
        else:
            files.append({artefact.name: artefact.content for artefact in part.artefacts})
            results.append(document.model_validate(part.document, from_attributes=True))
        on_step(FitStep(stage, number / len(requests), number, objective=None))
    return FinishedParts(len(requests), files, results, failures)


def _run(run: Callable[[Request, OnStep], Outcome], request: Request) -> Outcome | Problem:
    """Return what a part leaves, or why it has failed."""
    try:
        return run(request, lambda step: None)
    except JobFailedError as error:
        return error.problem
