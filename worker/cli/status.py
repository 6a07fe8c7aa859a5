"""`vnce status`: the service at a glance, for whoever runs it."""

import typer
from rich.markup import escape
from rich.table import Table

from service.http.words import counted
from worker.cli.client import JsonObject
from worker.cli.connection import connect
from worker.cli.exit_codes import ExitCode
from worker.cli.options import DEFAULT_URL, Json, Url
from worker.cli.printing import OUT, listing, print_json, time_text

READY = "ready"
REFUSING = "refusing"
_COLOURS = {READY: "green", "degraded": "yellow", "unavailable": "red"}
_MEBIBYTE = 2**20


def status(url: Url = DEFAULT_URL, as_json: Json = False) -> None:
    """Show whether the service is ready, how long its queue is, and who is at work.

    Exit status: 0 if it is ready and 1 if it is degraded, unavailable or not there.
    """
    with connect(url) as client:
        document = client.status()
    readiness = document["readiness"]
    if as_json:
        print_json(document)
    else:
        colour = _COLOURS[readiness["status"]]
        OUT.print(
            f"VNCE {escape(document['version'])} at {escape(url)}: "
            f"[bold {colour}]{readiness['status']}[/]",
            highlight=False,
        )
        OUT.print(f"database {readiness['database']}, broker {readiness['broker']}")
        if document["queue"] is not None:
            OUT.print(_queue_in_words(document["queue"]), highlight=False)
        if document["processes"]:
            OUT.print(_process_table(document["processes"]))
        for missing in _missing(readiness):
            OUT.print(f"[yellow]{missing}[/]", highlight=False)
    raise typer.Exit(ExitCode.OK if readiness["status"] == READY else ExitCode.FAILED)


def _queue_in_words(queue: JsonObject) -> str:
    waits = f", the oldest for {_duration(queue['oldest_queued_seconds'])}"
    words = f"jobs: {queue['queued']} queued{waits if queue['queued'] else ''}"
    words += f", {queue['running']} running"
    if queue["split"]:
        words += f", {queue['split']} waiting for their parts"
    if queue["expired_leases"]:
        words += f", {queue['expired_leases']} whose worker is lost"
    if queue["outbox"]:
        age = _duration(queue["oldest_outbox_seconds"])
        words += f"; {counted(queue['outbox'], 'message')} to be sent, the oldest for {age}"
    return words


def _missing(readiness: JsonObject) -> list[str]:
    """Return what is missing and what that means, a sentence each."""
    sentences = []
    if readiness["broker"] == REFUSING:
        sentences.append(
            "The broker takes no messages, and workers wait for it: their logs say why."
        )
    if readiness["workers"] == 0:
        sentences.append("No worker is live: jobs wait.")
    if readiness["dispatchers"] == 0:
        sentences.append("No dispatcher is running: jobs are queued, but workers are not notified.")
    return sentences


def _process_table(processes: list[JsonObject]) -> Table:
    headings = ("process", "what", "version", "since", "heard of", "memory", "job")
    return listing(headings, (_process_row(process) for process in processes))


def _process_row(process: JsonObject) -> tuple[object, ...]:
    age = _duration(process["heartbeat_age_seconds"])
    memory = process["memory_bytes"]
    return (
        f"{process['host']}:{process['pid']}",
        process["kind"],
        process["version"],
        time_text(process["started_at"]),
        f"{age} ago" if process["is_live"] else f"LOST {age} ago",
        None if memory is None else f"{memory / _MEBIBYTE:.0f} MiB",
        process["job_id"],
    )


def _duration(seconds: float) -> str:
    """Return a length of time in the largest unit of which there are at least two."""
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:.0f} s"
