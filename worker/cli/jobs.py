"""`vnce wait`, `get`, `jobs` and `cancel`: the jobs of a running service."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from service.http.problems import Problem
from worker.cli.client import Client, JsonObject
from worker.cli.connection import connect
from worker.cli.exit_codes import ExitCode
from worker.cli.network_summary import NUM_TOP_EDGES
from worker.cli.options import DEFAULT_LIMIT, DEFAULT_URL, Cursor, Json, Limit, Url
from worker.cli.printing import (
    ERR,
    OUT,
    print_json,
    print_page,
    print_problem,
    time_text,
)
from worker.cli.progress import board, show_job
from worker.cli.result_folder import RESULT, fetch, say_written, write_files, write_result
from worker.cli.result_summary import exit_code, print_result

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Identifier of the job.")]


def wait(job: JobId, url: Url = DEFAULT_URL, as_json: Json = False) -> None:
    """Wait for a job with live progress, then sum up its result.

    Exit status: 0 if the fit converged, 3 if it did not, 4 if the job was cancelled, 1 if it
    failed.
    """
    with connect(url) as client:
        raise typer.Exit(wait_for(client, job, as_json))


def get(
    job: JobId,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Files of the result, such as precision.csv or figures/network.svg.",
            show_default="result.json; with --out all",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", file_okay=False, help="Folder to write to.", show_default="print"),
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Fetch a job's result: its document, matrices, graph files, figures, data."""
    with connect(url) as client:
        result = client.result(job)
        known = [RESULT, *(file["name"] for file in result["files"])]
        if unknown := [name for name in names or [] if name not in known]:
            raise typer.BadParameter(
                f"this result has no {unknown[0]!r}; it has {', '.join(known)}", param_hint="FILE"
            )
        contents = fetch(client, job, result, names or (known if out else [RESULT]))
    if out is None:
        for content in contents.values():
            sys.stdout.buffer.write(content)
        return
    write = write_files if names else write_result
    write(out, contents)
    say_written(OUT, out, contents)


def graph(
    job: JobId,
    threshold: Annotated[
        float,
        typer.Option(min=0, max=1, help="Least |partial correlation| of a pair; 0: all pairs."),
    ],
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="Folder that the files go to.")
    ],
    url: Url = DEFAULT_URL,
) -> None:
    """Draw a network at another threshold, without fitting it again: graph files and figures."""
    from worker.cli.redraw import redraw  # noqa: PLC0415 - matplotlib, only here

    with connect(url) as client:
        raise typer.Exit(redraw(client, job, threshold, out))


def jobs(
    state: Annotated[
        str | None,
        typer.Option(
            help="Only queued, running, succeeded, failed or cancelled.", show_default="any"
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Only jobs on this data set.", show_default="any")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Only jobs with this tag.", show_default="any")
    ] = None,
    parent: Annotated[
        str | None,
        typer.Option(help="Only parts of this job.", show_default="jobs that are part of no other"),
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
) -> None:
    """List jobs, newest first."""
    with connect(url) as client:
        page = client.jobs(
            state=state,
            dataset_id=dataset,
            tag=tag,
            parent_id=parent,
            limit=limit,
            cursor=cursor,
        )
    headings = ("id", "state", "done", "what", "dataset", "tag", "created")
    print_page(page, headings, _job_row, as_json=as_json)


def cancel(job: JobId, url: Url = DEFAULT_URL, as_json: Json = False) -> None:
    """Cancel a job: at once if it waits, within seconds if it runs."""
    with connect(url) as client:
        document = client.cancel(job)
    if as_json:
        print_json(document)
    else:
        ending = document["state"] if document["finished_at"] else "will stop within seconds"
        OUT.print(f"{job}: {ending}", highlight=False)


def wait_for(client: Client, job_id: str, as_json: bool) -> ExitCode:
    """Show a job's progress until it has ended, and what came of it; return the exit status."""
    try:
        with board(ERR) as add:
            show = add(job_id)
            for job in client.poll(job_id):
                show_job(show, job)
    except KeyboardInterrupt:
        ERR.print(f"No longer waiting; the job goes on. To stop it: vnce cancel {job_id}")
        return ExitCode.CANCELLED
    match job["state"]:
        case "succeeded":
            return _sum_up(client, job, as_json)
        case "failed":
            print_problem(Problem.model_validate(job["error"]))
            return ExitCode.FAILED
        case _:
            ERR.print(f"{job_id} was cancelled.", highlight=False)
            return ExitCode.CANCELLED


def _sum_up(client: Client, job: JsonObject, as_json: bool) -> ExitCode:
    result = client.result(job["id"])
    if as_json:
        print_json(result)
    else:
        is_network = result["kind"] == "estimation"
        edges = client.edges(job["id"], limit=NUM_TOP_EDGES) if is_network else []
        print_result(OUT, result, edges)
    return exit_code(result)


def _job_row(job: JsonObject) -> tuple[object, ...]:
    fraction = 1.0 if job["state"] == "succeeded" else (job["progress"] or {}).get("fraction", 0.0)
    spec = job["spec"]
    return (
        job["id"],
        job["state"],
        f"{fraction:.0%}",
        _about(spec),
        spec.get("dataset_id"),
        spec["tag"],
        time_text(job["created_at"]),
    )


def _about(spec: JsonObject) -> str:
    match spec["kind"]:
        case "estimation":
            estimator, model = spec["estimator"]["kind"], spec["model"]["kind"]
            return f"mixture, {estimator}" if model == "mixture" else str(estimator)
        case "experiment" | "experiment-part":
            return str(spec["experiment"]["name"])
        case kind:
            return str(kind)
