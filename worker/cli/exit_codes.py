"""What the command line's exit status means."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit statuses, the same for every command."""

    OK = 0
    FAILED = 1  # the service refused or did not answer, or a job failed
    MISUSE = 2  # wrong options, a file that cannot be read, a model that does not fit the data
    NOT_CONVERGED = 3  # there is a result, but the fit had not converged
    CANCELLED = 4  # Ctrl-C, or a cancelled job
