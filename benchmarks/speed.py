"""CPU time and memory of the engine beside its targets, all in one run and on one thread.

    python -m benchmarks.speed [--seeds 5] [--only ratios,paper,surface,large,gibbs]

Ratios compare with scikit-learn's GraphicalLassoCV on the mean-filled table, in turns. Targets in
seconds are for a machine whose float64 matrix product runs at 50 GFLOP/s on one thread: measured
seconds are multiplied by this machine's rate over 50. Results go to `results/speed.csv`.
"""

import argparse
import math
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.covariance import GraphicalLassoCV

from benchmarks.accuracy import RESULTS, write_rows
from benchmarks.large import Usage, measure_apart
from vnce_engine import TruncatedGaussianMLE, TruncatedGaussianVNCE
from vnce_engine.contrastive.truncated_problem import Problem
from vnce_engine.data.observations import Observations
from vnce_engine.distributions.sampling import sample_truncated_gaussian
from vnce_engine.experiments.graph_recovery import GRAPHS, simulate
from vnce_engine.optim.surrogate import Surrogate
from vnce_engine.penalties.penalty import PenaltyKind
from vnce_engine.runtime.progress import Progress

FloatArray = NDArray[np.float64]

REFERENCE_RATE = 50e9
FRACTION = 0.3
PENALTY = 0.3
# Seeds of the data sets from here on; those below are kept for accuracy.
FIRST_SEED = 100
_GEMM_SIZE = 1500
_REPEATS = 5


@dataclass(frozen=True)
class Figure:
    """A measured figure, and the most (or least) that it should be."""

    name: str
    value: float | None
    unit: str
    target: str
    """Such as "<= 1.5"; empty where the figure is for information."""

    def met(self) -> str:
        """Return "yes" or "no", or nothing where there is no target or no figure."""
        if not self.target or self.value is None:
            return ""
        sign, limit = self.target.split()
        met = self.value <= float(limit) if sign == "<=" else self.value >= float(limit)
        return "yes" if met else "no"


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5, help="data sets behind each median")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, comma-separated")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rate = gemm_rate()
    figures = [Figure("float64 matrix product, one thread", rate / 1e9, "GFLOP/s", "")]
    for section in arguments.only.split(","):
        figures += SECTIONS[section](rate, arguments.seeds)
    columns = (*(field.name for field in fields(Figure)), "met")
    rows = [
        (figure.name, figure.value, figure.unit, figure.target, figure.met()) for figure in figures
    ]
    write_rows(RESULTS / "speed.csv", columns, rows)
    table = Table(*columns)
    for name, value, *rest in rows:
        table.add_row(name, "not measured" if value is None else f"{value:.3g}", *rest)
    Console(width=120).print(table)


def gemm_rate() -> float:
    """Return floating-point operations a second of CPU time of a large float64 product."""
    a = torch.rand(
        _GEMM_SIZE, _GEMM_SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    return 2 * _GEMM_SIZE**3 / _fastest(lambda: a @ a)


def ratios(_rate: float, num_seeds: int) -> Iterator[Figure]:
    """Compare fits at 30 % missing with the graphical lasso."""
    for graph in GRAPHS:
        yield from _against_lasso(
            graph,
            num_seeds,
            {
                f"fixed penalty, {graph}": (_fixed, "<= 1.5"),
                f"with selection, {graph}": (_default, "<= 8"),
            },
        )


def paper(_rate: float, num_seeds: int) -> Iterator[Figure]:
    """Compare the paper's recipe with the graphical lasso."""
    for graph in GRAPHS:
        yield from _against_lasso(
            graph, min(2, num_seeds), {f'preset "paper", {graph}': (_paper, "<= 30")}
        )


def surrogate(rate: float, _num_seeds: int) -> Iterator[Figure]:
    """Compare value and gradient with two matrix products over the rows at the full rate."""
    for num_columns, target in ((20, ""), (50, ">= 0.5"), (100, ">= 0.5"), (200, ">= 0.5")):
        _, X = simulate("ring", FRACTION, FIRST_SEED, num_columns)
        generator = torch.Generator().manual_seed(0)
        problem = Problem.prepare(Observations.from_array(X), 10, "sobol", generator)
        start = problem.start(has_linear=False)
        sample = problem.sample
        penalty = problem.penalty(PENALTY, PenaltyKind.ADAPTIVE, problem.num_rows, has_linear=False)
        whole = Surrogate(sample, penalty, problem.constraints(has_linear=False))
        seconds = _fastest(lambda s=whole, a=start: s.at(a, Progress(None)))
        operations = sum(4 * block.work for block in sample.blocks)
        yield Figure(
            f"value and gradient, d = {num_columns}",
            operations / seconds / rate,
            "of that rate",
            target,
        )


def large(rate: float, _num_seeds: int) -> Iterator[Figure]:
    """Measure wide and long tables, each in a process of its own."""
    _, wide = simulate("ring", FRACTION, FIRST_SEED, 200, 1000)
    yield from _usage("d = 200, n = 1000", measure_apart(_default, wide), rate, 20, 300)
    _, long = simulate("ring", FRACTION, FIRST_SEED, 20, 100_000)
    yield from _usage("d = 20, n = 100,000", measure_apart(_default, long), rate, 30, 500)
    usage = measure_apart(_natural, long)
    yield from _usage("natural-gradient MLE, d = 20, n = 100,000", usage, rate, 5, None)


def gibbs(_rate: float, _num_seeds: int) -> Iterator[Figure]:
    """Measure 1,000 draws, burn-in 100, thinning 10, beside R's tmvtnorm where R is present."""
    for num_columns in (20, 100):
        precision = GRAPHS["ring"](num_columns, np.random.default_rng(FIRST_SEED))
        ours = _fastest(
            lambda K=precision: sample_truncated_gaussian(K, 1000, np.random.default_rng(0))
        )
        theirs = _tmvtnorm(num_columns)
        yield Figure(f"Gibbs sampler, d = {num_columns}", ours, "s", "")
        yield Figure(f"R's tmvtnorm, d = {num_columns}", theirs, "s", "")


SECTIONS: dict[str, Callable[[float, int], Iterator[Figure]]] = {
    "ratios": ratios,
    "paper": paper,
    "surface": surrogate,
    "large": large,
    "gibbs": gibbs,
}


def _default() -> Any:
    return TruncatedGaussianVNCE(random_state=0)


def _fixed() -> Any:
    return TruncatedGaussianVNCE(linear="zero", penalty=PENALTY, random_state=0)


def _paper() -> Any:
    return TruncatedGaussianVNCE(preset="paper", random_state=0)


def _natural() -> Any:
    return TruncatedGaussianMLE(linear="zero", random_state=0)


def _against_lasso(
    graph: str, num_seeds: int, methods: dict[str, tuple[Callable[[], Any], str]]
) -> Iterator[Figure]:
    """Yield median seconds, and median ratios to the lasso on the same table just before."""
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    reference: list[float] = []
    for seed in range(FIRST_SEED, FIRST_SEED + num_seeds):
        _, X = simulate(graph, FRACTION, seed)
        filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        with warnings.catch_warnings():
            # The graphical lasso warns about folds that do not converge on filled tables.
            warnings.simplefilter("ignore")
            reference.append(_seconds(lambda table=filled: GraphicalLassoCV().fit(table)))
            for name, (make, _) in methods.items():
                seconds[name].append(_seconds(lambda m=make, table=X: m().fit(table)))
    yield Figure(f"graphical lasso, {graph}", float(np.median(reference)), "s", "")
    for name, (_, target) in methods.items():
        times = np.array(seconds[name])
        yield Figure(name, float(np.median(times)), "s", "")
        yield Figure(name, float(np.median(times / reference)), "x graphical lasso", target)


def _usage(
    name: str, usage: Usage, rate: float, seconds: float, megabytes: float | None
) -> Iterator[Figure]:
    scaled = usage.seconds * rate / REFERENCE_RATE
    yield Figure(f"{name} ({usage.status})", scaled, "s at 50 GFLOP/s", f"<= {seconds:g}")
    target = "" if megabytes is None else f"<= {megabytes:g}"
    yield Figure(f"{name}: memory", usage.megabytes, "MB", target)


def _tmvtnorm(num_columns: int) -> float | None:
    """Return tmvtnorm's seconds for the same draws, None where R or the package is missing."""
    if shutil.which("Rscript") is None:
        return None
    script = Path(__file__).with_name("tmvtnorm.R")
    command = ["Rscript", "--vanilla", str(script), str(num_columns)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(answer.stdout) if answer.returncode == 0 else None


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _fastest(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the fastest of several runs, after one that warms up."""
    work()
    return min((_seconds(work) for _ in range(_REPEATS)), default=math.nan)


if __name__ == "__main__":
    main()
