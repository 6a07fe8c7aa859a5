"""How Monte Carlo likelihood by the paper's stochastic gradient depends on its step size.

    python -m benchmarks.step_sizes [--seeds 3] [--out docs/reproduction/step-sizes]

The recipe is the paper's at full length: 80 epochs, batches of 100 rows, new Gibbs chains at every
step with a burn-in of 100 sweeps and a thinning of 10, 5 draws a row. VNCE, the default and the
paper's recipe, is fitted to the same data sets: those of the experiment `graph-recovery`, seeds
from 100 on. A fit takes 10 to 40 s of CPU time. Each line is kept in `rows.csv` as soon as it is
known, so that a run that was cut off goes on where it ended; medians, paired differences from the
best step size and the picture are made from what is there.
"""

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.comparators import FIRST_SEED, measure
from vnce_engine import TruncatedGaussianMLE
from vnce_engine.estimators.truncated_gaussian import TruncatedGaussianVNCE
from vnce_engine.experiments.graph_recovery import GRAPHS
from worker.artefacts.figures.drawing import add_legend, add_title, render
from worker.artefacts.figures.experiments.looks import LINE_LOOKS

FRACTIONS = (0.0, 0.3)
STEP_SIZES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LIKELIHOOD = "mc-mle"
# Estimators that need no step size, and what the picture calls them.
OTHERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "vnce": ("VNCE", lambda: TruncatedGaussianVNCE(random_state=0)),
    "vnce-paper": (
        "VNCE, paper's recipe",
        lambda: TruncatedGaussianVNCE(preset="paper", random_state=0),
    ),
    "mc-mle-natural": (
        "Monte-Carlo MLE, natural gradient",
        lambda: TruncatedGaussianMLE(linear="zero", random_state=0),
    ),
}
_KEYS = ("graph", "missing", "data_set", "estimator", "step_size")
_SCORES = ("auc_abs", "auc_signed", "mse", "seconds")
_COLUMNS = (*_KEYS, *_SCORES, "status", "warnings")
# Column, title of the panel, label of its axis.
_PANELS = (
    ("auc_abs", "pairs ranked by |K|", "area under the ROC curve"),
    ("auc_signed", "pairs ranked by K, sign known", "area under the ROC curve"),
    ("mse", "K off the diagonal", "mean squared error"),
)
_PANEL_INCHES = (4.6, 2.7)

# A graph, a share of missing cells, a seed, an estimator and its step size or "".
Key = tuple[str, ...]
Line = dict[str, str]


def main() -> None:
    """Measure what is not yet in the file of rows, then write medians and the picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_sizes")
    parser.add_argument("--seeds", type=int, default=3, help="data sets a cell, from seed 100 on")
    parser.add_argument("--out", type=Path, default=Path("docs/reproduction/step-sizes"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "rows.csv"
    known = {tuple(line[key] for key in _KEYS) for line in _read(path)}
    for seed in range(FIRST_SEED, FIRST_SEED + arguments.seeds):
        for key, make in _cells(seed):
            if key not in known:
                _append(path, key, make)
    lines = _read(path)
    medians = summarise(lines)
    _write(arguments.out / "medians.csv", medians)
    if arguments.seeds > 1:
        _write(arguments.out / "paired.csv", compare_with_best(lines))
    for file_format in ("svg", "png"):
        picture = render(partial(draw, lines=medians), file_format)
        (arguments.out / f"step-sizes.{file_format}").write_bytes(picture)


def summarise(lines: Sequence[Line]) -> list[Line]:
    """Return medians over data sets, and the fits that warned of steps too large."""
    groups = dict.fromkeys(
        (x["graph"], x["missing"], x["estimator"], x["step_size"]) for x in lines
    )
    summary = []
    for graph, missing, estimator, step_size in sorted(groups):
        cell = {
            "graph": graph,
            "missing": missing,
            "estimator": estimator,
            "step_size": step_size,
        }
        members = [line for line in lines if cell.items() <= line.items()]
        medians = {
            score: f"{np.median([float(line[score]) for line in members]):.5g}" for score in _SCORES
        }
        cut = sum("step-size-too-large" in line["warnings"].split() for line in members)
        summary.append(
            {**cell, "data_sets": str(len(members)), **medians, "step_size_too_large": str(cut)}
        )
    return summary


def compare_with_best(lines: Sequence[Line]) -> list[Line]:
    """Return the default of VNCE less the step size that is best on each data set.

    Means over data sets with standard errors; the best is known by the true graph alone.
    """
    by_key = {tuple(line[key] for key in _KEYS): line for line in lines}
    data_sets = sorted({line["data_set"] for line in lines})
    table = []
    for graph, fraction in product(GRAPHS, FRACTIONS):
        cells = [(graph, f"{fraction:g}", data_set) for data_set in data_sets]
        for score, best in (("auc_abs", max), ("auc_signed", max), ("mse", min)):
            differences = [
                float(by_key[*cell, "vnce", ""][score])
                - best(float(by_key[*cell, LIKELIHOOD, f"{x:g}"][score]) for x in STEP_SIZES)
                for cell in cells
            ]
            error = np.std(differences, ddof=1) / np.sqrt(len(differences))
            table.append(
                {
                    "graph": graph,
                    "missing": f"{fraction:g}",
                    "score": score,
                    "data_sets": str(len(data_sets)),
                    "mean_difference": f"{np.mean(differences):.3g}",
                    "standard_error": f"{error:.2g}",
                }
            )
    return table


def draw(figure: Figure, lines: Sequence[Line]) -> None:
    """Draw medians against the step size; estimators without one are level lines."""
    width, height = _PANEL_INCHES
    figure.set_size_inches(width * len(GRAPHS), height * len(_PANELS))
    panels = figure.subplots(
        len(_PANELS),
        len(GRAPHS),
        squeeze=False,
        sharex=True,
        sharey="row",
        gridspec_kw={"wspace": 0.08, "hspace": 0.25},
    )
    for (column, title, label), row_of_panels in zip(_PANELS, panels, strict=True):
        for graph, axes in zip(GRAPHS, row_of_panels, strict=True):
            _draw_panel(axes, [line for line in lines if line["graph"] == graph], column)
            axes.set_title(f"{graph}: {title}", fontsize=9, loc="left")
        row_of_panels[0].set_ylabel(label)
    for axes in panels[-1]:
        axes.set_xlabel("step size of the first step")
    add_legend(figure, panels[0, 0].get_legend_handles_labels()[0])
    num_sets = max(int(line["data_sets"]) for line in lines)
    add_title(
        figure,
        "Monte Carlo likelihood depends on its step size",
        f"Medians over {num_sets} data set{'s' if num_sets > 1 else ''}, 80 epochs. Full lines: no "
        "cell missing; dashed: 30 %. "
        "Level lines have no step size.",
    )


def _draw_panel(axes: Axes, lines: Sequence[Line], column: str) -> None:
    for fraction, style in zip(FRACTIONS, ("-", "--"), strict=True):
        of_fraction = [line for line in lines if float(line["missing"]) == fraction]
        by_size = sorted(
            (float(line["step_size"]), float(line[column]))
            for line in of_fraction
            if line["estimator"] == LIKELIHOOD
        )
        axes.plot(
            *zip(*by_size, strict=True),
            label=f"Monte-Carlo MLE, {fraction:.0%} missing",
            **{**LINE_LOOKS[0], "linestyle": style},
        )
        for look, (name, (title, _)) in zip(LINE_LOOKS[1:], OTHERS.items(), strict=False):
            for line in of_fraction:
                if line["estimator"] == name:
                    axes.axhline(
                        float(line[column]),
                        color=look["color"],
                        linestyle=style,
                        linewidth=1.2,
                        label=f"{title}, {fraction:.0%} missing",
                    )
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(plain)
    if column == "mse":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(plain)


def _cells(seed: int) -> Iterator[tuple[Key, Callable[[], Any]]]:
    """Yield what is to be fitted to the data sets of a seed."""
    for graph in GRAPHS:
        for fraction in FRACTIONS:
            cell = (graph, f"{fraction:g}", str(seed))
            for name, (_, make) in OTHERS.items():
                yield (*cell, name, ""), make
            for size in STEP_SIZES:
                yield (*cell, LIKELIHOOD, f"{size:g}"), partial(_stochastic, size)


def _stochastic(step_size: float) -> TruncatedGaussianMLE:
    return TruncatedGaussianMLE(
        method="stochastic", linear="zero", step_size=step_size, random_state=0
    )


def _append(path: Path, key: Key, make: Callable[[], Any]) -> None:
    graph, missing, seed, *_ = key
    start = time.monotonic()
    scores = measure(make, graph, float(missing), int(seed))
    figures = (scores.auc_abs, scores.auc_signed, scores.mse, scores.seconds)
    cells = (*key, *(f"{x:.6g}" for x in figures), scores.status, " ".join(scores.warnings))
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(_COLUMNS)
        writer.writerow(cells)
    print(*cells, f"{time.monotonic() - start:.0f} s elapsed", flush=True)


def _read(path: Path) -> list[Line]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, lines: Sequence[Line]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, tuple(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
