"""Lines of results: each measured once, kept in a file as soon as it is known."""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
# Name of a figure, and the figure or figures.
Values = Mapping[str, Any]
# Part, cell, seed, method.
Key = tuple[str, str, int, str]


@dataclass(frozen=True)
class Extent:
    """How much is to be measured."""

    full: bool
    data: Path | None = None
    """A folder of further tables in CSV."""


@dataclass(frozen=True)
class Measurement:
    """One fit, or as much as is measured together."""

    cell: str
    """What is the same for all seeds and methods that are compared, such as "ring n=1000 30%"."""
    seed: int
    method: str
    run: Callable[[], Values]


@dataclass(frozen=True)
class Line:
    """What a measurement gave; `values` is {"error": text} where it raised an exception."""

    part: str
    cell: str
    seed: int
    method: str
    values: Values

    @property
    def key(self) -> Key:
        """What names the measurement."""
        return self.part, self.cell, self.seed, self.method


@dataclass(frozen=True)
class Table:
    """A table of the page, the worst line first where there is a worst."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def markdown(self) -> str:
        """Return the table as Markdown, numbers to three digits."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        body = "\n".join("| " + " | ".join(_text(cell) for cell in line) + " |" for line in lines)
        return f"**{self.title}**\n\n{body}\n"


class Results:
    """The lines of a run, in a file that it can go on from."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[Key, Line] = {}
        if path.exists():
            for text in path.read_text(encoding="utf-8").splitlines():
                part, cell, seed, method, values = text.split(";", 4)
                line = Line(part, cell, int(seed), method, json.loads(values))
                self._lines[line.key] = line
        path.parent.mkdir(parents=True, exist_ok=True)

    def measure(self, part: str, measurements: Iterable[Measurement]) -> None:
        """Run what is not there yet, and append its lines."""
        for measurement in measurements:
            key = (part, measurement.cell, measurement.seed, measurement.method)
            if key in self._lines:
                continue
            line = Line(*key, _outcome(measurement.run))
            self._lines[key] = line
            with self._path.open("a", encoding="utf-8") as file:
                values = json.dumps(line.values)
                file.write(f"{part};{line.cell};{line.seed};{line.method};{values}\n")

    def of(self, part: str) -> list[Line]:
        """Return the lines of a part in the order in which they were measured."""
        return [line for line in self._lines.values() if line.part == part]


def by_cell(lines: Iterable[Line]) -> Iterator[tuple[str, dict[str, list[Line]]]]:
    """Yield each cell with its lines that raised nothing, by method."""
    cells: dict[str, dict[str, list[Line]]] = {}
    for line in lines:
        methods = cells.setdefault(line.cell, {})
        if "error" not in line.values:
            methods.setdefault(line.method, []).append(line)
    yield from cells.items()


def troubles(lines: Iterable[Line]) -> Table:
    """Return the table of measurements that raised or did not converge."""
    rows = []
    for line in lines:
        status = line.values.get("error") or line.values.get("status", "converged")
        if status != "converged":
            rows.append((line.part, line.cell, line.seed, line.method, status))
    return Table("Not converged, or raised", ("part", "cell", "seed", "method", "what"), (*rows,))


def values_of(lines: Sequence[Line], name: str) -> FloatArray:
    """Return a figure of every line, seeds first (seeds, ...)."""
    return np.array([line.values[name] for line in lines], dtype=np.float64)


def spread(values: FloatArray) -> FloatArray:
    """Return the SD of values (seeds, ...) over seeds, NaN where there is one seed only."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    deviation: FloatArray = values.std(axis=0, ddof=1)
    return deviation


def yes_or_no(met: bool) -> str:
    """Return the word for a column that says whether a target is met."""
    return "yes" if met else "**no**"


def fitted(make: Callable[[], Any], X: FloatArray) -> tuple[Any, Values]:
    """Return the estimator that `make` returns, fitted to X (n, d), with its status and seconds."""
    start = time.process_time()
    estimator = make().fit(X)
    seconds = time.process_time() - start
    return estimator, {"status": str(estimator.status_), "seconds": seconds}


def _outcome(run: Callable[[], Values]) -> Values:
    with warnings.catch_warnings():
        # The graphical lasso warns about folds that do not converge.
        warnings.simplefilter("ignore")
        try:
            return run()
        except Exception as error:  # noqa: BLE001 - hours of other measurements go on, and its row in the table says what it raised
            return {"error": f"{type(error).__name__}: {error}"[:200]}


def _text(cell: object) -> str:
    if isinstance(cell, float | np.floating):
        return "" if np.isnan(cell) else f"{cell:.3g}"
    return str(cell)
