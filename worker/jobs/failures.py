"""How a job ends without a result."""

from collections.abc import Sequence

from service.http.problems import Problem, ProblemCode, ProblemItem, problem_document


class JobFailedError(Exception):
    """Raised when the job cannot be done; `problem` says why and what to try."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class FitCancelledError(Exception):
    """Raised when `on_step` asked the fit to stop."""


def incompatible(detail: str, errors: Sequence[ProblemItem] = ()) -> JobFailedError:
    """Return the failure of a job whose data or options the engine refuses."""
    code = ProblemCode.INCOMPATIBLE_MODEL
    return JobFailedError(problem_document(code, detail, errors=list(errors)))
