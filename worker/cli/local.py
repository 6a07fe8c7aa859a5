"""`vnce fit`, `serve` and `demo`: what runs on this machine.

Each imports what it runs inside its function: torch, matplotlib and the servers take seconds to
load, which no other command and no `--help` should wait for.
"""

from pathlib import Path
from typing import Annotated

import typer

from service.datasets.vocabulary import RequestedFormat
from worker import threads
from worker.cli import options
from worker.cli.exit_codes import ExitCode
from worker.cli.options import ModelChoices
from worker.cli.printing import ERR, OUT, print_error


def serve(
    data: Annotated[
        Path, typer.Option("--data", file_okay=False, help="Folder that keeps everything.")
    ] = Path("vnce-data"),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Jobs that run at a time.")] = 1,
) -> None:
    """Run the whole service here: API, workers, queue and database, until Ctrl-C."""
    from worker import embedded  # noqa: PLC0415 - see the module's docstring

    def say_ready(service: embedded.RunningService) -> None:
        OUT.print(f"Listening on [bold]{service.url}[/], documented at {service.url}/docs")
        OUT.print(f"Data in {service.data_dir}; stop with Ctrl-C.", highlight=False)

    try:
        embedded.serve(
            data, host=host, port=port, workers=workers, on_ready=say_ready, say=ERR.print
        )
    except embedded.ServeError as error:
        print_error(str(error))
        raise typer.Exit(ExitCode.FAILED) from error


def demo(
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="Folder that the files go to.")
    ] = Path("vnce-demo"),
) -> None:
    """Run the main job end to end: two tables with holes, two estimators, over HTTP."""
    threads.limit(1)
    from worker.demo import run_demo  # noqa: PLC0415 - see the module's docstring
    from worker.embedded import ServeError  # noqa: PLC0415 - see the module's docstring

    try:
        run_demo(out, OUT)
    except ServeError as error:
        print_error(str(error))
        raise typer.Exit(ExitCode.FAILED) from error


def fit(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="Table: CSV, JSON, Parquet or Arrow."),
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
    format: options.Format = RequestedFormat.AUTO,
    delimiter: options.Delimiter = None,
    decimal: options.DecimalMark = None,
    encoding: options.EncodingName = None,
    skip_rows: options.SkipRows = 0,
    units_row: options.UnitsRow = False,
    na_values: options.NaValues = None,
    variables: options.Variables = None,
    transform: options.TransformName = None,
    linear: options.Linear = None,
    estimator: options.EstimatorName = options.EstimatorKind.VNCE,
    preset: options.PresetName = None,
    imputation: options.ImputationName = None,
    penalty: options.Penalty = None,
    penalty_kind: options.PenaltyShape = None,
    noise_ratio: options.NoiseRatio = None,
    noise_draws: options.NoiseDrawsName = None,
    max_iter: options.MaxIter = None,
    tol: options.Tolerance = None,
    edge_threshold: options.EdgeThreshold = None,
    censored: options.Censored = None,
    seed: options.Seed = None,
    as_json: options.Json = False,
) -> None:
    """Fit one table here, without a service, and write every file of the result.

    Ends with 0 if the fit converged, 3 if it did not, 2 if the table cannot be read or does not
    fit the model, 4 after Ctrl-C.
    """
    threads.limit(1)
    from worker.cli.fitting import fit_file  # noqa: PLC0415 - see the module's docstring

    reading = {
        "format": format,
        "delimiter": delimiter,
        "decimal": decimal,
        "encoding": encoding,
        "skip_rows": skip_rows,
        "units_row": units_row,
        "na_values": na_values or [],
    }
    choices = ModelChoices(
        variables=variables,
        transform=transform,
        linear=linear,
        estimator=estimator,
        preset=preset,
        imputation=imputation,
        penalty=penalty,
        penalty_kind=penalty_kind,
        noise_ratio=noise_ratio,
        noise_draws=noise_draws,
        max_iter=max_iter,
        tol=tol,
        edge_threshold=edge_threshold,
        censored=censored,
        seed=seed,
    )
    raise typer.Exit(fit_file(file, out, truth, reading, choices, as_json=as_json))
