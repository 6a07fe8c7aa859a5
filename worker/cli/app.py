"""The commands of `vnce` put together, and what becomes of their errors."""

from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from service.http.problems import Problem, ProblemCode, ProblemError, problem_document
from worker.cli import comparing, datasets, jobs, keys, local, status, submission
from worker.cli.client import ServiceProblemError, ServiceUnreachableError
from worker.cli.exit_codes import ExitCode
from worker.cli.printing import print_error, print_problem
from worker.embedded.serve_error import ServeError
from worker.jobs.failures import JobFailedError

_OURS = ("vnce", "vnce_engine", "service", "worker")
# What the user can put right in the command itself.
_MISUSE = {
    ProblemCode.VALIDATION_FAILED,
    ProblemCode.UNREADABLE_DATASET,
    ProblemCode.INCOMPATIBLE_MODEL,
    ProblemCode.INVALID_REQUEST,
    ProblemCode.PAYLOAD_TOO_LARGE,
}


class Commands(TyperGroup):
    """Runs a command; turns its errors into readable lines and an exit status."""

    # A command may return anything; the context's class is private to typer.
    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name."""
        try:
            return super().invoke(ctx)
        except (ServiceProblemError, JobFailedError) as error:
            print_problem(error.problem)
            code = _code_of(error.problem)
        except ProblemError as error:  # raised by the service's own rules when run here
            problem = problem_document(error.code, error.detail, errors=error.errors)
            print_problem(problem)
            code = _code_of(problem)
        except ServiceUnreachableError as error:
            reason = str(error).rstrip(".")
            print_error(f"{reason}. Start it with `vnce serve`, or name another by --url.")
            code = ExitCode.FAILED
        except ServeError as error:
            print_error(str(error))
            code = ExitCode.FAILED
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] in _OURS:
                raise
            print_error(_how_to_have(error.name))
            code = ExitCode.FAILED
        except KeyboardInterrupt:
            print_error("cancelled")
            code = ExitCode.CANCELLED
        raise typer.Exit(code)


def _how_to_have(module: str) -> str:
    if module == "fcntl":  # not on Windows
        return (
            "This command runs on Linux and macOS. Here vnce is a client of a service that runs "
            "elsewhere, named by --url."
        )
    return (
        f"This command needs the library {module}, which is not installed here: "
        "pip install 'vnce[worker]'."
    )


def _code_of(problem: Problem) -> ExitCode:
    return ExitCode.MISUSE if problem.code in _MISUSE else ExitCode.FAILED


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="""Learn an undirected network from a table with missing cells.

    Start with **vnce demo**, or with a table of your own: **vnce fit table.csv --out result**.

    Exit status: 0 done and converged; 1 the service refused, or a job failed; 2 wrong options,
    unreadable input, or a model that does not fit the data; 3 a result that had not converged;
    4 cancelled.""",
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"vnce {version('vnce')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Take what comes before a command; typer needs a function for it."""


_HERE = "On this machine"
_SERVICE = "With a running service"

for _panel, _command, _example in (
    (_HERE, local.demo, "vnce demo --out ~/vnce-demo"),
    (_HERE, local.fit, "vnce fit assays.csv --transform cbrt --na-value -999 --out result"),
    (_HERE, local.impute, "vnce impute assays.csv -m 20 --output completed.parquet"),
    (
        _HERE,
        comparing.compare,
        "vnce compare assays.csv --model truncated-gaussian:vnce:transform=cbrt "
        "--model gaussian:gaussian-em:penalty=ebic --out compared",
    ),
    (
        _HERE,
        comparing.difference,
        "vnce difference cases.csv controls.csv --transform cbrt --out differences; "
        "of a service: vnce difference job_9a3c… job_1f2e…, or job_9a3c… --by treated",
    ),
    (_HERE, local.serve, "vnce serve --data ~/vnce-data --workers 2"),
    (_HERE, local.reproduce, "vnce reproduce mixture-population --quick"),
    (_SERVICE, submission.submit, "vnce submit dataset_1f2e… --transform cbrt --seed 1 --wait"),
    (_SERVICE, submission.simulate, "vnce simulate hub --missing 0.3 --seed 1 --wait"),
    (_SERVICE, submission.score, "vnce score job_9a3c… --truth graph.csv --wait"),
    (_SERVICE, submission.bootstrap, "vnce bootstrap job_9a3c… --resamples 500 --wait"),
    (_SERVICE, jobs.wait, "vnce wait job_9a3c…"),
    (_SERVICE, jobs.get, "vnce get job_9a3c… --out result; vnce get job_9a3c… graph.csv | head"),
    (_SERVICE, jobs.graph, "vnce graph job_9a3c… --threshold 0.2 --out redrawn"),
    (_SERVICE, jobs.jobs, "vnce jobs --state running"),
    (_SERVICE, status.status, "vnce status --json"),
    (_SERVICE, jobs.cancel, "vnce cancel job_9a3c…"),
):
    app.command(rich_help_panel=_panel, epilog=f"Example: {_example}")(_command)
app.add_typer(
    datasets.app,
    name="datasets",
    rich_help_panel=_SERVICE,
    help="Upload, list, show and delete data sets; attach the graph known to be true.",
)
app.add_typer(
    keys.app,
    name="keys",
    rich_help_panel=_SERVICE,
    help="Make, list and revoke API keys.",
)
