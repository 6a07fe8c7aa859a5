"""`vnce demo`: the main job from end to end, over HTTP, on the embedded service.

For each problem a table with holes is uploaded and the true graph attached; then VNCE and NCE on
the mean-filled table estimate the network, and both are scored against that graph.
"""

import shutil
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from service.http.problems import Problem
from service.results.file_schemas import RocRead
from service.results.vocabulary import EdgeScore
from vnce_engine.inference.metrics import EdgeROC
from worker.artefacts.figures.drawing import figure_artefacts
from worker.artefacts.figures.roc import SCORE_LABELS, draw_roc
from worker.cli.client import FINAL_STATES, Client, JsonObject
from worker.cli.demo_problems import SEED, DemoProblem, ring_problem, sachs_problem
from worker.cli.printing import listing
from worker.cli.progress import Show, board, show_job
from worker.cli.result_folder import fetch, say_written, write_result
from worker.cli.result_summary import print_result
from worker.cli.truth_file import edges_document
from worker.embedded.running import running_service
from worker.jobs.failures import JobFailedError

POLL_SECONDS = 0.25
NUM_WORKERS = 2
NUM_EDGES_SHOWN = 20
# What edges are ranked by everywhere, free of the columns' units, on which |K| depends.
SCORE = EdgeScore.ABS_SCALED_INTERACTION
ESTIMATORS: Mapping[str, JsonObject] = {
    "VNCE": {"kind": "vnce"},
    "NCE, mean-filled": {"kind": "nce", "imputation": "mean"},
}
# Beside the files of the result of VNCE, as is the figure `comparison`, both ROC curves.
TABLE = "table.csv"


def run_demo(out: Path, console: Console) -> None:
    """Run both problems and write their files below `out`; leaves no process behind.

    Raises `JobFailedError` if a job fails, and what `Client` raises.
    """
    started = time.monotonic()
    console.print("Starting the service: API, queue, database, workers …")
    with running_service(workers=NUM_WORKERS) as service, Client.connect(service.url) as client:
        console.print(f"It answers at {service.url}", highlight=False)
        for problem in (sachs_problem(), ring_problem()):
            console.print(f"\n[bold]{problem.title}[/]", highlight=False)
            _solve(client, problem, out / problem.key, console)
    console.print(
        f"\nDone in {time.monotonic() - started:.0f} s; the service has stopped and its data are "
        f"gone. To keep one running:\n\n    {serve_command()}\n",
        highlight=False,
    )


def serve_command() -> str:
    """Return what to type to start the service, from where the user stands."""
    script = Path(sys.executable).with_name("vnce")
    if shutil.which("vnce") == str(script):
        return "vnce serve"
    here = Path.cwd()
    return f"{script.relative_to(here) if script.is_relative_to(here) else script} serve"


def _solve(client: Client, problem: DemoProblem, folder: Path, console: Console) -> None:
    dataset = client.upload_dataset(problem.content, {"name": f"{problem.key}.csv"}, preview=False)
    client.attach_ground_truth(dataset["id"], edges_document(sorted(problem.truth)))
    jobs = {
        name: client.submit(_body(dataset["id"], problem, estimator))["id"]
        for name, estimator in ESTIMATORS.items()
    }
    with board(console) as add:
        _follow(client, {job_id: add(name) for name, job_id in jobs.items()})
    results = {name: client.result(job_id) for name, job_id in jobs.items()}
    edges = client.edges(jobs["VNCE"], limit=NUM_EDGES_SHOWN)
    print_result(console, results["VNCE"], edges, problem.truth)
    console.print(_score_table(results))
    console.print(problem.remark, highlight=False)
    curves = {name: _roc(client, job_id) for name, job_id in jobs.items()}
    files = fetch(client, jobs["VNCE"], results["VNCE"])
    draw = partial(draw_roc, curves=curves, title=f"Edge recovery by {SCORE_LABELS[SCORE]}")
    files |= {file.name: file.content for file in figure_artefacts("comparison", draw)}
    files[TABLE] = problem.content
    write_result(folder, files)
    say_written(console, folder, files)


def _body(dataset_id: str, problem: DemoProblem, estimator: JsonObject) -> JsonObject:
    return {
        "kind": "estimation",
        "dataset_id": dataset_id,
        "model": {"kind": "truncated-gaussian", "transform": problem.transform},
        "estimator": estimator,
        "seed": SEED,
    }


def _follow(client: Client, waiting: dict[str, Show]) -> None:
    """Show the progress of jobs until all have ended; raises `JobFailedError` if one failed."""
    while waiting:
        for job_id, show in list(waiting.items()):
            job = client.job(job_id)
            show_job(show, job)
            if job["error"] is not None:
                raise JobFailedError(Problem.model_validate(job["error"]))
            if job["state"] in FINAL_STATES:
                del waiting[job_id]
        time.sleep(POLL_SECONDS)


def _roc(client: Client, job_id: str) -> EdgeROC:
    document = RocRead.model_validate_json(client.result_file(job_id, f"roc/{SCORE}.json"))
    return EdgeROC(
        fpr=tuple(document.fpr),
        tpr=tuple(document.tpr),
        thresholds=tuple(document.thresholds),
        auc=document.auc,
        average_precision=document.average_precision,
        reason=document.reason,
        num_pairs=document.n_pairs,
        num_edges=document.n_true_edges,
    )


def _score_table(results: Mapping[str, JsonObject]) -> Table:
    """Return the AUC of every estimator under every score."""
    rows = []
    for name, result in results.items():
        auc = {score["score"]: score["auc"] for score in result["scores"]}
        rows.append([name, *(f"{auc[score]:.3f}" for score in SCORE_LABELS)])
    return listing(["AUC by", *SCORE_LABELS.values()], rows)
