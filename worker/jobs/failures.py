"""How an estimation ends without a result."""

from service.http.problems import Problem


class JobFailedError(Exception):
    """Raised when the estimation cannot be done; `problem` says why and what to try."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class FitCancelledError(Exception):
    """Raised when `on_step` asked the fit to stop."""
