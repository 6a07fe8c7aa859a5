"""Edge recovery of the estimators on simulated graphs, the figures that the project publishes.

    python -m benchmarks.accuracy [--seeds 20] [--only vnce,glasso] [--fractions 0,0.3]

Data sets are those of the experiment `graph-recovery` (d = 20, n = 1000; common diagonal = largest
row sum + 0.01), with seeds 0, 1, 2, ... Every line is kept in `results/accuracy.csv` as soon as it
is known: a run that was cut off goes on where it ended, and tables are made from what is there.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from vnce_engine.experiments.experiment import Row, Scalar, SummaryTable
from vnce_engine.experiments.graph_recovery import GraphRecovery, compare, simulate
from vnce_engine.experiments.recovery_estimators import ESTIMATORS

RESULTS = Path(__file__).parent / "results"
COLUMNS = (
    "graph",
    "missing",
    "data_set",
    "estimator",
    "auc_abs",
    "auc_signed",
    "mse",
    "seconds",
    "status",
    "reason",
)
_NUMBERS = ("missing", "auc_abs", "auc_signed", "mse", "seconds")
# Stochastic Monte Carlo likelihood takes a minute a fit; it is measured where it is named.
_SLOW_SECONDS = 10.0


def main() -> None:
    """Measure what is not yet in the file of results, then print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=20, help="data sets a cell, from seed 0 on")
    parser.add_argument("--only", default=",".join(_quick()), help="estimators; the first leads")
    parser.add_argument("--fractions", default="0,0.1,0.2,0.3,0.4,0.5", help="of missing cells")
    parser.add_argument("--results", type=Path, default=RESULTS / "accuracy.csv")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    experiment = GraphRecovery(
        fractions=tuple(float(text) for text in arguments.fractions.split(",")),
        num_data_sets=arguments.seeds,
        estimators=tuple(arguments.only.split(",")),
    )
    measure(experiment, arguments.results)
    rows = read_rows(arguments.results)
    for table in experiment.summarise(rows):
        write_rows(arguments.results.with_name(f"{table.name}.csv"), table.columns, table.rows)
        Console(width=170).print(_printable(table))


def measure(experiment: GraphRecovery, path: Path) -> None:
    """Append to the file a line for every cell of the experiment that it does not have."""
    known = {_key(row) for row in read_rows(path)}
    for seed in range(experiment.num_data_sets):
        for graph in experiment.graphs:
            for fraction in experiment.fractions:
                cell = {"graph": graph, "missing": fraction, "data_set": seed}
                missing = [
                    name
                    for name in experiment.estimators
                    if _key({**cell, "estimator": name}) not in known
                ]
                if not missing:
                    continue
                truth, X = simulate(graph, fraction, seed)
                with warnings.catch_warnings():
                    # The graphical lasso warns about folds that do not converge.
                    warnings.simplefilter("ignore")
                    lines = compare(truth, X, missing, clock=time.process_time)
                rows: list[dict[str, Scalar]] = [{**cell, **line} for line in lines]
                append_rows(path, rows)


def read_rows(path: Path) -> list[Row]:
    """Return the lines of a file of results, none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_typed(line) for line in csv.DictReader(file)]


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Append lines to a file of results, which starts with the names of its columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def write_rows(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Scalar]]) -> None:
    """Write a table as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def _quick() -> list[str]:
    return [name for name, estimator in ESTIMATORS.items() if estimator.seconds < _SLOW_SECONDS]


def _key(row: Row) -> tuple[Scalar, ...]:
    return tuple(row[name] for name in COLUMNS[:4])


def _typed(line: dict[str, str]) -> Row:
    row: dict[str, Scalar] = {**line, "data_set": int(line["data_set"])}
    for name in _NUMBERS:
        row[name] = float(line[name]) if line[name] else None
    return row


def _printable(table: SummaryTable) -> Table:
    printable = Table(*table.columns, title=table.title)
    for row in table.rows:
        printable.add_row(*(_text(cell) for cell in row))
    return printable


def _text(cell: Scalar) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


if __name__ == "__main__":
    main()
