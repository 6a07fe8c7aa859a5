"""`vnce fit`, `impute`, `serve`, `demo` and `reproduce`: what runs on this machine.

Each imports what it runs inside its function: torch, matplotlib and the servers take up to three
seconds to load, which no other command and no `--help` should wait for. What computes is imported
after the limit of threads is set, which its libraries read as they load.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from service.datasets.options import ReadLimits
from service.datasets.vocabulary import FORMATS
from service.http.words import counted
from service.jobs.specs.difference import PERMUTATIONS_OF_GROUPS
from service.jobs.specs.estimation import MAX_IMPUTATIONS
from service.jobs.vocabulary import ExperimentName
from service.settings import Settings
from worker.cli.client import Client
from worker.cli.connection import connect
from worker.cli.options import (
    ESTIMATION,
    EXPERIMENT,
    IMPUTATION,
    READING,
    Json,
    estimation_request,
)
from worker.cli.printing import ERR, OUT
from worker.cli.spec_options import with_options
from worker.processes import threads

# What the data set of a fit on this machine is called where a service gives identifiers.
LOCAL = "local"


def serve(
    data: Annotated[
        Path, typer.Option("--data", file_okay=False, help="Folder that keeps everything.")
    ] = Path("vnce-data"),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Jobs that run at a time.")] = 1,
    require_keys: Annotated[
        bool,
        typer.Option(
            "--require-keys", help="Ask for API keys on a loopback address too; see `vnce keys`."
        ),
    ] = False,
) -> None:
    """Run the whole service here: API, workers, queue and database, until Ctrl-C."""
    from worker.embedded import running as embedded  # noqa: PLC0415 - 0.3 s for SQLAlchemy, only here

    def say_ready(service: embedded.RunningService) -> None:
        OUT.print(f"Listening on [bold]{service.url}[/], documented at {service.url}/docs")
        if service.requires_keys:
            OUT.print(
                f"API keys are required: vnce keys create NAME --data {service.data_dir}",
                highlight=False,
            )
        OUT.print(f"Data in {service.data_dir}; stop with Ctrl-C.", highlight=False)

    embedded.serve(
        data,
        host=host,
        port=port,
        workers=workers,
        require_keys=require_keys,
        on_ready=say_ready,
        say=ERR.print,
    )


def demo(
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="Folder that the files go to.")
    ] = Path("vnce-demo"),
) -> None:
    """Run the main job end to end: two tables with missing cells, two estimators, over HTTP."""
    threads.limit(1)
    from worker.cli.demo import run_demo  # noqa: PLC0415 - NumPy, which reads the limit at import

    run_demo(out, OUT)


@with_options(EXPERIMENT)
def reproduce(
    name: Annotated[
        ExperimentName, typer.Argument(metavar="NAME", help=f"One of {', '.join(ExperimentName)}.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, of two minutes on two cores.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            file_okay=False,
            help="Folder that the files go to.",
            show_default="vnce-reproduction/NAME",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that share the parts, without --url.")
    ] = 2,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            help="Address of a running service to use.",
            show_default="one is started for the purpose",
        ),
    ] = None,
    **given: Any,
) -> None:
    """Reproduce an experiment of the paper, or one of our own: data, tables and figure.

    posterior-toy: Figures 1 and 2. mixture-em: Figure 3. mixture-population: Figure 4.
    graph-recovery: Figure 5. coverage, not in the paper: of the 95 % intervals of edges.
    """
    threads.limit(1)
    from worker.cli import reproduce as runs  # noqa: PLC0415 - torch, which reads the limit at import
    from worker.embedded import running as embedded  # noqa: PLC0415 - 0.3 s for SQLAlchemy, only here

    body = EXPERIMENT.document(given) | {"scale": "quick" if quick else "full"}
    body["experiment"] = {"name": name.value, **body.get("experiment", {})}
    seconds = runs.estimate_seconds(body)
    OUT.print(
        f"{name}: about {seconds:.0f} s of CPU time, {seconds / workers / 60:.1f} min on "
        f"{counted(workers, 'core')}.",
        highlight=False,
    )
    folder = out or Path("vnce-reproduction") / name.value
    with ExitStack() as stack:
        if url is not None:
            client = stack.enter_context(connect(url))
        else:
            service = stack.enter_context(embedded.running_service(workers=workers))
            client = stack.enter_context(Client.connect(service.url))
        runs.reproduce(client, body, folder, OUT)


@with_options(READING, IMPUTATION)
def impute(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help=f"Table: {FORMATS}."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            dir_okay=False,
            help="File that the completed table goes to, .csv or .parquet.",
            show_default="FILE-imputed.csv or .parquet, here",
        ),
    ] = None,
    imputations: Annotated[
        int | None,
        typer.Option(
            "--imputations",
            "-m",
            min=1,
            max=MAX_IMPUTATIONS,
            help="Completed tables to draw, one below the other, for Rubin's rules.",
            show_default="one, every missing cell at its conditional mean given its row",
        ),
    ] = None,
    **given: Any,
) -> None:
    """Fit one table here and write it with its missing cells filled.

    Observed cells stay as they are, in CSV to the last character. Exit status as of `vnce fit`.
    """
    threads.limit(1)
    from worker.cli.imputing import impute_file, output_of  # noqa: PLC0415 - torch, which reads the limit at import

    target = output_of(file, output)
    request = estimation_request(LOCAL, given, IMPUTATION) | {"imputations": imputations}
    limits = ReadLimits.from_settings(Settings.from_environment())
    raise typer.Exit(impute_file(file, target, READING.document(given), request, limits))


@with_options(READING, ESTIMATION)
def fit(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help=f"Table: {FORMATS}."),
    ],
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="Folder that the files go to.")
    ],
    truth: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Graph known to be true, to score against: CSV with two names a line below a "
            "header, or JSON as the API takes it.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=2_000,
            help="Bootstrap: refit the network to so many resamples of the rows, on all cores.",
            show_default=False,
        ),
    ] = None,
    subsets: Annotated[
        int,
        typer.Option(
            min=0,
            max=2_000,
            help="With --resamples, subsets of the rows for correlation stability, 10 or more.",
        ),
    ] = 0,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column with two different values, numbers or texts: test whether the networks of "
            "the two groups of rows differ. The column itself is in neither.",
            show_default=False,
        ),
    ] = None,
    permutations: Annotated[
        int,
        typer.Option(
            min=0, max=2_000, help="With --by, permutations of rows for the global tests."
        ),
    ] = PERMUTATIONS_OF_GROUPS,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Fit one table here, without a service, and write every file of the result.

    Exit status: 0 if the fit converged, 3 if it did not, 2 if the table cannot be read or does not
    fit the model, 4 after Ctrl-C.
    """
    if subsets and resamples is None:
        raise typer.BadParameter("needs --resamples, too", param_hint="--subsets")
    threads.limit(1)
    from worker.cli.fitting import FollowUps, fit_file  # noqa: PLC0415 - torch, which reads the limit at import

    reading, request = READING.document(given), estimation_request(LOCAL, given)
    limits = ReadLimits.from_settings(Settings.from_environment())
    wanted = FollowUps(resamples, subsets, by, permutations)
    done = fit_file(file, out, truth, reading, request, limits, wanted, as_json=as_json)
    raise typer.Exit(done)
