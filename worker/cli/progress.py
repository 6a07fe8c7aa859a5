"""Live progress of estimations: a bar each on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from worker.cli.client import JsonObject

# Without a terminal, a line for every stage and for every quarter of the work.
_LINE_EVERY = 0.25


class Show(Protocol):
    """Shows how far one estimation has come."""

    def __call__(self, stage: str, fraction: float, objective: float | None) -> None:
        """Show its stage, the share of its work that is done, and its objective per row."""


@contextmanager
def board(console: Console) -> Iterator[Callable[[str], Show]]:
    """Yield a function that adds an estimation, by its label, and returns what shows it."""
    if not console.is_terminal:
        yield lambda label: _lines(console, label)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        TextColumn("[cyan]{task.fields[stage]:<11}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[objective]:<19}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield lambda label: _bar(progress, label)


def show_job(show: Show, job: JsonObject) -> None:
    """Show how far a job of the service has come."""
    if job["state"] == "succeeded":
        show("done", 1.0, (job["progress"] or {}).get("objective"))
    elif job["progress"] is None:
        show(job["state"], 0.0, None)
    else:
        progress = job["progress"]
        show(progress["stage"], progress["fraction"], progress["objective"])


def _bar(progress: Progress, label: str) -> Show:
    task = progress.add_task(label, total=1.0, stage="queued", objective="")

    def show(stage: str, fraction: float, objective: float | None) -> None:
        text = _objective_text(objective)
        progress.update(task, completed=fraction, stage=stage, objective=text)

    return show


def _lines(console: Console, label: str) -> Show:
    last_stage, last_fraction = "", 0.0

    def show(stage: str, fraction: float, objective: float | None) -> None:
        nonlocal last_stage, last_fraction
        if stage == last_stage and fraction < min(1.0, last_fraction + _LINE_EVERY):
            return
        last_stage, last_fraction = stage, fraction
        line = f"{label}: {stage} {fraction:.0%} {_objective_text(objective)}"
        console.print(line.rstrip(), markup=False, highlight=False)

    return show


def _objective_text(objective: float | None) -> str:
    return "" if objective is None else f"objective {objective:.4f}"
