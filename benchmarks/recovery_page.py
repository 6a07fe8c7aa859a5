"""A page of tables from a graph-recovery result, for people to read.

    vnce reproduce graph-recovery --out FOLDER
    python -m benchmarks.recovery_page FOLDER

writes `FOLDER/README.md` from the CSV files there.
"""

import argparse
import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

Line = dict[str, str]
# An estimator's cells by its name and the share of missing cells.
Cells = Mapping[tuple[str, str], str]


def main() -> None:
    """Read the folder that the command line names and write its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery_page")
    parser.add_argument(
        "folder", type=Path, help="what `vnce reproduce graph-recovery` has written"
    )
    folder = parser.parse_args().folder
    page = folder / "README.md"
    page.write_text(
        _page(
            _read(folder / "tables" / "medians.csv"),
            _read(folder / "tables" / "differences.csv"),
            _read(folder / "data" / "rows.csv"),
        ),
        encoding="utf-8",
    )
    print(f"wrote {page}")


def _page(medians: list[Line], differences: list[Line], rows: list[Line]) -> str:
    """Return the tables as a page: each graph's medians, and by how much the default is ahead."""
    parts = [
        "# Edge recovery",
        "Written by `python -m benchmarks.recovery_page`; quartiles are in [tables](tables), every "
        "fit is in [data](data/rows.csv).",
    ]
    for graph in dict.fromkeys(line["graph"] for line in medians):
        of_graph = [line for line in medians if line["graph"] == graph]
        ahead = [line for line in differences if line["graph"] == graph]
        parts += [
            f"## {graph.capitalize()}",
            "Medians of the area under the ROC curve, by |K| / by K:",
            _table(_cells(of_graph, "{auc_abs:.3f} / {auc_signed:.3f}")),
            "Medians of the mean squared error of K_ij, and of seconds:",
            _table(_cells(of_graph, "{mse:.4f}, {seconds:.2f} s")),
            "How far the default is ahead by |K|, paired over data sets, mean (standard error):",
            _table(_cells(ahead, "{auc_abs_ahead:+.3f} ({auc_abs_se:.3f})")),
            "Fits that did not converge, of those that there were:",
            _table(_not_converged([line for line in rows if line["graph"] == graph])),
        ]
    parts.append("![Edge recovery from incomplete data](figures/graph-recovery.png)")
    return "\n\n".join(parts) + "\n"


def _cells(lines: list[Line], cell: str) -> Cells:
    """Return what `cell` makes of each line; lines of refused tables have no numbers."""
    return {_key(line): cell.format(**_numbers(line)) for line in lines if all(line.values())}


def _not_converged(rows: list[Line]) -> Cells:
    """Return how many fits ended otherwise; a refused table has none."""
    fits = [row for row in rows if row["status"] != "refused"]
    totals = Counter(_key(row) for row in fits)
    others = Counter(_key(row) for row in fits if row["status"] != "converged")
    ever = {name for name, _ in others}
    return {key: f"{others[key]} of {totals[key]}" for key in totals if key[0] in ever}


def _table(cells: Cells) -> str:
    """Return a table with a line an estimator and a column a share of missing cells."""
    if not cells:
        return "none"
    fractions = sorted({fraction for _, fraction in cells}, key=float)
    lines = [["", *(f"{100 * float(fraction):g} %" for fraction in fractions)]]
    lines.append(["---"] * len(lines[0]))
    for name in dict.fromkeys(name for name, _ in cells):
        known = [cells.get((name, fraction), "") for fraction in fractions]
        lines.append([f"`{name}`", *known])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _key(line: Line) -> tuple[str, str]:
    return line["estimator"], line["missing"]


def _numbers(line: Line) -> dict[str, float]:
    words = ("graph", "estimator")
    return {key: float(text) for key, text in line.items() if key not in words}


def _read(path: Path) -> list[Line]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
