"""Tables, page and picture of several graph-recovery results together.

    python -m benchmarks.recovery_tables FOLDER... --out FOLDER

Each folder is what `vnce reproduce graph-recovery --out FOLDER` has written, for the same seed. An
estimator in a later folder takes the place of the same one in an earlier folder, so that one that
has changed need be run again alone.
"""

import argparse
import csv
from collections.abc import Iterable
from pathlib import Path

from vnce_engine.experiments.experiment import Row, Scalar, SummaryTable
from vnce_engine.experiments.graph_recovery import GraphRecovery
from worker.experiment_figures import draw_experiment
from worker.exports.csv_text import csv_bytes

_WHOLE = ("data_set",)
_WORDS = ("graph", "estimator", "status", "reason")


def main() -> None:
    """Read the folders that the command line names and write tables and pictures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery_tables")
    parser.add_argument("folders", type=Path, nargs="+", help="results, the newest last")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    arguments = parser.parse_args()
    rows = _merged(_read(folder / "data" / "rows.csv") for folder in arguments.folders)
    experiment = GraphRecovery(
        graphs=_distinct(rows, "graph"),
        fractions=tuple(sorted({float(str(row["missing"])) for row in rows})),
        estimators=_distinct(rows, "estimator"),
    )
    tables = experiment.summarise(rows)
    files = {f"tables/{table.name}.csv": csv_bytes(table.columns, table.rows) for table in tables}
    files["README.md"] = _document(experiment, tables).encode()
    for artefact in draw_experiment(experiment.name, rows, tables):
        files[artefact.name] = artefact.content
    for name, content in files.items():
        path = arguments.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    print(f"{len(rows)} rows; wrote {', '.join(files)} to {arguments.out}")


def _document(experiment: GraphRecovery, tables: Iterable[SummaryTable]) -> str:
    """Return the tables as a page: each graph's medians, and by how much the default is ahead."""
    by_name = {
        table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for table in tables
    }
    parts = [
        "# Edge recovery",
        "Written by `python -m benchmarks.recovery_tables`; quartiles are in [tables](tables).",
    ]
    for graph in experiment.graphs:
        medians = [row for row in by_name["medians"] if row["graph"] == graph]
        ahead = [row for row in by_name["differences"] if row["graph"] == graph]
        parts += [
            f"## {graph.capitalize()}",
            "Medians of the area under the ROC curve, by |K| / by K:",
            _by_fraction(experiment, medians, "{auc_abs:.3f} / {auc_signed:.3f}"),
            "Medians of the mean squared error of K_ij, and of seconds:",
            _by_fraction(experiment, medians, "{mse:.4f}, {seconds:.2f} s"),
            "How far the default is ahead by |K|, paired over data sets, mean (standard error):",
            _by_fraction(experiment, ahead, "{auc_abs_ahead:+.3f} ({auc_abs_se:.3f})"),
        ]
    parts.append("![Edge recovery from incomplete data](figures/graph-recovery.png)")
    return "\n\n".join(parts) + "\n"


def _by_fraction(experiment: GraphRecovery, rows: list[Row], cell: str) -> str:
    """Return a table with a line an estimator and a column a share of missing cells."""
    texts = {(row["estimator"], row["missing"]): cell.format(**row) for row in rows}
    head = [f"{100 * fraction:g} %" for fraction in experiment.fractions]
    lines = [["", *head], ["---"] * (len(head) + 1)]
    for name in dict.fromkeys(str(row["estimator"]) for row in rows):
        known = [texts.get((name, fraction), "") for fraction in experiment.fractions]
        lines.append([f"`{name}`", *known])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {key: _scalar(key, text) for key, text in line.items()} for line in csv.DictReader(file)
        ]


def _scalar(key: str, text: str) -> Scalar:
    if not text:
        return None
    if key in _WORDS:
        return text
    return int(text) if key in _WHOLE else float(text)


def _merged(results: Iterable[list[Row]]) -> list[Row]:
    """Return the rows of all results, each estimator's from the last result that has it."""
    merged: list[Row] = []
    for rows in results:
        newer = {row["estimator"] for row in rows}
        merged = [row for row in merged if row["estimator"] not in newer] + rows
    # The default comes first: the others are compared with it.
    return sorted(merged, key=lambda row: row["estimator"] != "vnce")


def _distinct(rows: Iterable[Row], key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(row[key]) for row in rows))


if __name__ == "__main__":
    main()
