"""`vnce submit`, `wait`, `get`, `jobs` and `cancel`: estimations by a running service."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from service.http.problems import Problem
from service.results.schemas import EstimationResult
from worker.cli import options
from worker.cli.client import Client, JsonObject
from worker.cli.connection import connect
from worker.cli.exit_codes import ExitCode
from worker.cli.options import DEFAULT_URL, Json, ModelChoices, Url, job_document
from worker.cli.other_summary import other_exit_code, print_other_summary
from worker.cli.printing import (
    ERR,
    OUT,
    listing,
    print_json,
    print_problem,
    to_json,
)
from worker.cli.progress import board, show_job
from worker.cli.result_folder import RESULT, write_files, write_result
from worker.cli.summary import NUM_TOP_EDGES, exit_code, print_summary

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Identifier of the job.")]


def submit(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Identifier of the data set.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the job and sum it up.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run; submit nothing.")
    ] = False,
    tag: Annotated[
        str | None, typer.Option(help="Your label to find the job by.", show_default=False)
    ] = None,
    variables: options.Variables = None,
    model: options.ModelName = None,
    model_options: options.ModelOptions = None,
    transform: options.TransformName = None,
    linear: options.Linear = None,
    estimator: options.EstimatorName = options.EstimatorKind.VNCE,
    estimator_options: options.EstimatorOptions = None,
    preset: options.PresetName = None,
    imputation: options.ImputationName = None,
    penalty: options.Penalty = None,
    penalty_kind: options.PenaltyShape = None,
    noise_ratio: options.NoiseRatio = None,
    noise_draws: options.NoiseDrawsName = None,
    max_iter: options.MaxIter = None,
    tol: options.Tolerance = None,
    min_observed: options.MinObserved = None,
    edge_threshold: options.EdgeThreshold = None,
    censored: options.Censored = None,
    seed: options.Seed = None,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
) -> None:
    """Submit an estimation of an uploaded data set to the service and print its job."""
    choices = ModelChoices(
        variables=variables,
        model=model,
        model_options=model_options,
        transform=transform,
        linear=linear,
        estimator=estimator,
        options=estimator_options,
        preset=preset,
        imputation=imputation,
        penalty=penalty,
        penalty_kind=penalty_kind,
        noise_ratio=noise_ratio,
        noise_draws=noise_draws,
        max_iter=max_iter,
        tol=tol,
        min_observed=min_observed,
        edge_threshold=edge_threshold,
        censored=censored,
        seed=seed,
    )
    body = job_document(dataset, choices, tag)
    with connect(url) as client:
        if dry_run:
            print_json(client.validate(body))
            return
        job = client.submit(body)
        if wait:
            raise typer.Exit(wait_for(client, job["id"], as_json))
    if as_json:
        print_json(job)
    else:
        OUT.print(job["id"], highlight=False)


def wait(job: JobId, url: Url = DEFAULT_URL, as_json: Json = False) -> None:
    """Wait for a job with live progress, then sum up its result.

    Ends with 0 if the fit converged, 3 if it did not, 4 if the job was cancelled, 1 if it failed.
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
        files = [file["name"] for file in result["files"]]
        wanted = names or ([RESULT, *files] if out else [RESULT])
        if unknown := [name for name in wanted if name not in {RESULT, *files}]:
            known = ", ".join([RESULT, *files])
            raise typer.BadParameter(f"this result has no {unknown[0]!r}; it has {known}")
        contents = {
            name: to_json(result).encode() if name == RESULT else client.result_file(job, name)
            for name in wanted
        }
    if out is None:
        for content in contents.values():
            sys.stdout.buffer.write(content)
        return
    write = write_files if names else write_result
    write(out, contents)
    OUT.print(f"{len(wanted)} files in {out}: {', '.join(wanted)}", highlight=False)


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
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(help="Cursor that the last page named.", show_default=False)
    ] = None,
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
    if as_json:
        print_json(page)
        return
    headings = ("id", "state", "done", "what", "dataset", "tag", "created")
    OUT.print(listing(headings, (_job_row(job) for job in page["items"])))
    if page["next_cursor"]:
        OUT.print(f"More: --cursor {page['next_cursor']}", markup=False, highlight=False)


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
    document = client.result(job["id"])
    if as_json:
        print_json(document)
    if document["kind"] != "estimation":
        if not as_json:
            print_other_summary(OUT, document)
        return other_exit_code(document)
    result = EstimationResult.model_validate(document)
    if not as_json:
        print_summary(OUT, result, client.edges(job["id"], limit=NUM_TOP_EDGES))
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
        job["created_at"],
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
