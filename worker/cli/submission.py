"""`vnce submit`, `simulate`, `score` and `bootstrap`: jobs for a running service."""

from pathlib import Path
from typing import Annotated, Any

import typer

from service.jobs.vocabulary import SimulatedGraph
from worker.cli.client import JsonObject
from worker.cli.connection import connect
from worker.cli.exit_codes import ExitCode
from worker.cli.jobs import wait_for
from worker.cli.options import (
    BOOTSTRAP,
    DEFAULT_URL,
    ESTIMATION,
    SCORING,
    SIMULATION,
    Json,
    Url,
    estimation_request,
)
from worker.cli.printing import OUT, print_json
from worker.cli.spec_options import with_options
from worker.cli.truth_file import read_truth_file

Wait = Annotated[bool, typer.Option("--wait", help="Wait for the job and sum it up.")]


@with_options(ESTIMATION)
def submit(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Identifier of the data set.")],
    wait: Wait = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run; submit nothing.")
    ] = False,
    tag: Annotated[
        str | None, typer.Option(help="Your label to find the job by.", show_default=False)
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Submit an estimation of an uploaded data set to the service and print its job."""
    body = estimation_request(dataset, given)
    if tag is not None:
        body["tag"] = tag
    if dry_run:
        with connect(url) as client:
            print_json(client.validate(body))
        return
    raise typer.Exit(submit_job(url, body, wait=wait, as_json=as_json))


@with_options(SIMULATION)
def simulate(
    graph: Annotated[SimulatedGraph, typer.Argument(metavar="GRAPH", help="ring or hub.")],
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Have a data set drawn from a network that is attached to it as its true graph."""
    body = SIMULATION.document(given) | {"graph": graph.value}
    raise typer.Exit(submit_job(url, body, wait=wait, as_json=as_json))


def score(
    job: Annotated[str, typer.Argument(metavar="JOB", help="An estimation that has succeeded.")],
    truth: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="The graph, as a file that `vnce fit --truth` would take.",
            show_default="the data set's own",
        ),
    ] = None,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
) -> None:
    """Score an estimated network against a known graph, even one added later."""
    body = SCORING.document({}) | {"job_id": job}
    if truth is not None:
        body["ground_truth"] = read_truth_file(truth)
    raise typer.Exit(submit_job(url, body, wait=wait, as_json=as_json))


@with_options(BOOTSTRAP)
def bootstrap(
    job: Annotated[str, typer.Argument(metavar="JOB", help="An estimation that has succeeded.")],
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Bootstrap an estimated network: how stable each edge is over resamples of its rows."""
    body = BOOTSTRAP.document(given) | {"job_id": job}
    raise typer.Exit(submit_job(url, body, wait=wait, as_json=as_json))


def submit_job(url: str, body: JsonObject, *, wait: bool, as_json: bool) -> ExitCode:
    """Submit a job; print its identifier or, having waited for it, what came of it."""
    with connect(url) as client:
        job = client.submit(body)
        if wait:
            return wait_for(client, job["id"], as_json)
    if as_json:
        print_json(job)
    else:
        OUT.print(job["id"], highlight=False)
    return ExitCode.OK
