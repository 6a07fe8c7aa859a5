"""`vnce simulate` and `vnce score`: jobs of a running service that are no estimations."""

from pathlib import Path
from typing import Annotated

import typer

from service.jobs.specs.base import DEFAULT_SEED
from service.jobs.vocabulary import SimulatedGraph
from worker.cli.client import JsonObject
from worker.cli.connection import connect
from worker.cli.exit_codes import ExitCode
from worker.cli.jobs import wait_for
from worker.cli.options import DEFAULT_URL, Json, Url
from worker.cli.printing import OUT, print_json
from worker.cli.truth_file import read_truth_file

Wait = Annotated[bool, typer.Option("--wait", help="Wait for the job and sum it up.")]


def simulate(
    graph: Annotated[SimulatedGraph, typer.Argument(metavar="GRAPH", help="ring or hub.")],
    variables: Annotated[int, typer.Option(help="Variables.")] = 20,
    rows: Annotated[int, typer.Option(help="Rows.")] = 1_000,
    missing: Annotated[float, typer.Option(help="Share of cells that are discarded.")] = 0.0,
    name: Annotated[
        str | None, typer.Option(help="Name of the data set.", show_default="made up")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random draw.")] = DEFAULT_SEED,
    wait: Wait = False,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
) -> None:
    """Have a data set drawn from a network that is attached to it as its true graph."""
    body = {
        "kind": "simulation",
        "graph": graph.value,
        "n_variables": variables,
        "n_rows": rows,
        "missing_fraction": missing,
        "name": name,
        "seed": seed,
    }
    raise typer.Exit(_submit(url, body, wait=wait, as_json=as_json))


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
    """Score an estimated network against a graph that may have come after it."""
    graph = None if truth is None else read_truth_file(truth)
    body = {"kind": "scoring", "job_id": job, "ground_truth": graph}
    raise typer.Exit(_submit(url, body, wait=wait, as_json=as_json))


def _submit(url: str, body: JsonObject, *, wait: bool, as_json: bool) -> ExitCode:
    with connect(url) as client:
        job = client.submit(body)
        if wait:
            return wait_for(client, job["id"], as_json)
    if as_json:
        print_json(job)
    else:
        OUT.print(job["id"], highlight=False)
    return ExitCode.OK
