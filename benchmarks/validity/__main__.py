"""Whether the estimates are right, and the same whatever the seed: tables in Markdown.

    python -m benchmarks.validity [--full] [--only truth,default] [--data DIR]

Quick by default: minutes, a file of its own made anew. `--full` takes hours and appends every line
to `results/validity.csv` as soon as it is known: a run that was cut off goes on where it ended.
"""

import argparse
import os
import subprocess
import time
from pathlib import Path

import torch

from benchmarks.accuracy import RESULTS
from benchmarks.validity import (
    one_answer,
    penalised,
    small_tables,
    times,
    truth_recovered,
)
from benchmarks.validity.measurements import Extent, Results, troubles

PARTS = (times, small_tables, truth_recovered, penalised, one_answer)


def main() -> None:
    """Measure what is not there yet, then print the tables."""
    names = ",".join(part.PART for part in PARTS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity")
    parser.add_argument("--full", action="store_true", help="all sizes and seeds; resumable")
    parser.add_argument("--only", default=names, help=f"parts, comma-separated: {names}")
    parser.add_argument("--data", type=Path, help="a folder of further tables in CSV")
    parser.add_argument("--results", type=Path, help="the file of lines")
    parser.add_argument("--tables", action="store_true", help="print tables of what is in the file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    name = "validity.csv" if arguments.full else "validity-quick.csv"
    path = arguments.results or RESULTS / name
    if not (arguments.full or arguments.results or arguments.tables):
        path.unlink(missing_ok=True)
    results = Results(path)
    extent = Extent(arguments.full, arguments.data)
    print(f"Commit {_commit()}, load {os.getloadavg()[0]:.1f}.\n")
    for part in PARTS:
        if part.PART not in arguments.only.split(","):
            continue
        start = time.process_time()
        if not arguments.tables:
            results.measure(part.PART, part.measurements(extent))
        lines = results.of(part.PART)
        found = [table for table in (*part.tables(lines), troubles(lines)) if table.rows]
        for table in found:
            print(table.markdown(), flush=True)
        print(f"{time.process_time() - start:.0f} s of CPU time.\n", flush=True)


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    main()
