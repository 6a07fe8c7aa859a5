"""`vnce reproduce`: an experiment of the paper, run by the service and written to a folder."""

from pathlib import Path

from pydantic import TypeAdapter
from rich.console import Console

from service.http.problems import Problem
from service.jobs.specs.experiment import ExperimentSpec
from worker.cli.client import Client, JsonObject
from worker.cli.progress import board, show_job
from worker.cli.result_folder import fetch, say_written, write_files
from worker.cli.result_summary import print_result
from worker.cli.validation import validated
from worker.jobs.experiment_builders import build_experiment
from worker.jobs.failures import JobFailedError


def estimate_seconds(body: JsonObject) -> float:
    """Return about how many seconds of CPU time the experiment that `body` asks for will take.

    Raises `ProblemError` for one that does not fit its schema.
    """
    spec = validated(TypeAdapter(ExperimentSpec), body)
    return sum(part.estimated_seconds for part in build_experiment(spec).parts())


def reproduce(client: Client, body: JsonObject, out: Path, console: Console) -> None:
    """Have the service run the experiment, show how far it is, write every file to `out`.

    Raises `JobFailedError` if it fails or is cancelled.
    """
    job_id = client.submit(body)["id"]
    console.print(f"{job_id} is submitted; its parts are jobs of their own.", highlight=False)
    try:
        job = _follow(client, job_id, body["experiment"]["name"], console)
    except KeyboardInterrupt:
        client.cancel(job_id)
        raise
    if job["error"] is not None:
        raise JobFailedError(Problem.model_validate(job["error"]))
    result = client.result(job_id)
    files = fetch(client, job_id, result)
    write_files(out, files)
    print_result(console, result)
    say_written(console, out, files)


def _follow(client: Client, job_id: str, name: str, console: Console) -> JsonObject:
    job: JsonObject = {}
    with board(console) as add:
        show = add(name)
        for job in client.poll(job_id):
            show_job(show, job)
    return job
