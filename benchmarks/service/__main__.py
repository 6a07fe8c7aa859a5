"""The service under load on this machine, beside others, in turns.

    python -m benchmarks.service [--pygeoapi PYTHON] [--seconds 8] [--only rates,queue,...]

It needs wrk, and for a comparison the Python of an environment that has pygeoapi and gunicorn.
Servers are its own, on loopback. Results go to `results/service.json`.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain

from rich.console import Console
from rich.table import Table

from benchmarks.accuracy import RESULTS
from benchmarks.service import competitors, drain, queue, rates, results, scaling, uploads, wrk
from benchmarks.service.figures import Figure
from benchmarks.service.stack import on_postgresql, on_sqlite

SECTIONS = ("rates", "queue", "drain", "results", "uploads", "scaling")
NUM_QUEUED = 10_000
# A database, and the jobs that it holds when rates are measured: hardly any, a morning's work, or a
# week's.
RATES = (
    ("SQLite", on_sqlite, 50),
    ("SQLite", on_sqlite, 1_000),
    ("SQLite", on_sqlite, 3_000),
    ("PostgreSQL, with keys", on_postgresql, 1_000),
    ("PostgreSQL, with keys", on_postgresql, 3_000),
)
# Of 1,000 jobs each.
NUM_BATCHES = 5


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.service", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--pygeoapi", metavar="PYTHON", help="interpreter that has pygeoapi")
    parser.add_argument("--seconds", type=float, default=8, help="length of each load")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, comma-separated")
    arguments = parser.parse_args()
    if not wrk.is_installed():
        sys.exit("This needs wrk: `apt-get install wrk` on Debian, `brew install wrk` on macOS.")
    measured: dict[str, list[Figure]] = {}
    for section in arguments.only.split(","):
        before = os.getloadavg()
        measured[section] = []
        for figure in measure(section, arguments.pygeoapi, arguments.seconds):
            measured[section].append(figure)
            print(f"{figure.section}: {_line(figure)}", file=sys.stderr, flush=True)
        _write(section, measured[section], before)
    table = Table("section", "figure", "value", "unit", "target", "met")
    for figure in chain.from_iterable(measured.values()):
        table.add_row(
            figure.section, figure.name, _value(figure), figure.unit, figure.target, figure.met
        )
    Console(width=140).print(table)


def measure(section: str, pygeoapi_python: str | None, seconds: float) -> Iterator[Figure]:
    """Yield the figures of one section."""
    match section:
        case "rates":
            for name, opened, stored in RATES:
                with ExitStack() as running:
                    others = {"the baseline": running.enter_context(competitors.baseline())}
                    if pygeoapi_python is not None:
                        server = competitors.pygeoapi(pygeoapi_python, stored)
                        others[competitors.PYGEOAPI] = running.enter_context(server)
                    title = f"{name}, {stored} jobs at first"
                    yield from rates.measure(title, opened, others, stored, seconds)
        case "queue":
            yield from queue.measure(NUM_QUEUED)
        case "drain":
            yield from drain.measure("SQLite", on_sqlite, num_workers=2, num_batches=NUM_BATCHES)
            yield from drain.measure("PostgreSQL", on_postgresql, num_workers=2, num_batches=1)
        case "results":
            yield from results.measure()
        case "uploads":
            yield from uploads.measure()
        case "scaling":
            yield from scaling.measure(seconds)
        case _:
            sys.exit(f"There is no section {section!r}; there are {', '.join(SECTIONS)}.")


def _write(section: str, figures: list[Figure], load_before: tuple[float, ...]) -> None:
    """Write what a section has met to the file of results, which keeps those of the others."""
    file = RESULTS / "service.json"
    file.parent.mkdir(exist_ok=True)
    document = json.loads(file.read_text()) if file.exists() else {}
    document[section] = {
        "measured_at": datetime.now(tz=UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        # What else ran: a machine with nothing else to do begins near 0.
        "load_average_before": load_before,
        "load_average_after": os.getloadavg(),
        "figures": [{**asdict(figure), "met": figure.met} for figure in figures],
    }
    file.write_text(json.dumps(document, indent=1) + "\n")


def _value(figure: Figure) -> str:
    return "not measured" if figure.value is None else f"{figure.value:.4g}"


def _line(figure: Figure) -> str:
    return f"{figure.name}: {_value(figure)} {figure.unit} {figure.target} {figure.met}".rstrip()


if __name__ == "__main__":
    main()
