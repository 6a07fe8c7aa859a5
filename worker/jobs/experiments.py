"""Experiments of the paper as jobs: split into parts, run part by part, put together."""

import json
import time
from collections.abc import Sequence

from service.jobs.job_parts import PARTS_SHARE
from service.jobs.specs.base import planned
from service.jobs.specs.experiment import ExperimentPartSpec, ExperimentSpec
from service.results.experiment_result import (
    ExperimentPartResult,
    ExperimentResult,
    SummaryTableRead,
)
from service.results.formats import MediaType
from service.results.outcome import Artefact, Outcome
from vnce_engine.experiments.experiment import Row, SummaryTable
from vnce_engine.runtime.checkpoint import Checkpoint
from vnce_engine.runtime.reports import FitStep
from worker.artefacts.experiment_figures import draw_experiment
from worker.artefacts.exports.csv_text import csv_bytes
from worker.jobs.estimation import OnStep
from worker.jobs.experiment_builders import build_experiment
from worker.jobs.failures import FitCancelledError
from worker.jobs.parts import FinishedParts, Split, this_process
from worker.jobs.resuming import resume_or_restart
from worker.jobs.versions import versions

# The rows of a part.
ROWS = "rows.json"
# Rows that say which of several tables they belong to do so under this key.
_TABLE_KEY = "table"


def split(spec: ExperimentSpec, on_step: OnStep) -> Split:
    """Return a job for every part of the experiment."""
    parts = build_experiment(spec).parts()
    return Split(
        [
            ExperimentPartSpec(
                kind="experiment-part",
                experiment=spec.experiment,
                scale=spec.scale,
                seed=planned(spec.seed),
                part=index,
                label=part.label,
                tag=spec.tag,
            )
            for index, part in enumerate(parts)
        ]
    )


def run_part(spec: ExperimentPartSpec, checkpoint: Checkpoint | None, on_step: OnStep) -> Outcome:
    """Run one part; raises `FitCancelledError` if `on_step` asks to stop.

    `checkpoint` is what an interrupted attempt had done; seconds are those of the last attempt.
    """
    started = time.process_time()
    rows, _ = resume_or_restart(
        lambda kept: build_experiment(spec, kept).run(spec.part, on_step), checkpoint
    )
    return Outcome(
        document=ExperimentPartResult(
            kind="experiment-part",
            label=spec.label,
            n_rows=len(rows),
            seconds=time.process_time() - started,
            worker=this_process(),
            versions=versions(),
        ),
        edges=[],
        artefacts=[Artefact(ROWS, MediaType.JSON, json.dumps(rows, allow_nan=False).encode())],
    )


def put_together(spec: ExperimentSpec, parts: FinishedParts, on_step: OnStep) -> Outcome:
    """Sum up what the parts have found, failed ones counted and named.

    Raises `JobFailedError` if no part has a result.
    """
    _report(on_step, PARTS_SHARE)
    parts.require_some()
    rows = [row for content in parts.contents(ROWS) for row in json.loads(content)]
    tables = build_experiment(spec).summarise(rows)
    _report(on_step, 0.97)
    return Outcome(
        document=ExperimentResult(
            kind="experiment",
            experiment=spec.experiment,
            scale=spec.scale,
            tables=[_table_document(table) for table in tables],
            **parts.account(),
            seed=planned(spec.seed),
            versions=versions(),
        ),
        edges=[],
        artefacts=[
            *_data_files(rows),
            *(_table_file(table) for table in tables),
            *draw_experiment(spec.experiment.name, rows, tables),
        ],
    )


def _report(on_step: OnStep, fraction: float) -> None:
    if on_step(FitStep(stage="put together", fraction=fraction, iteration=0, objective=None)):
        raise FitCancelledError


def _data_files(rows: Sequence[Row]) -> list[Artefact]:
    """Return the rows as CSV files, one for each table that they name."""
    by_table: dict[str, list[Row]] = {}
    for row in rows:
        by_table.setdefault(str(row.get(_TABLE_KEY, "rows")), []).append(row)
    return [
        Artefact(f"data/{table}.csv", MediaType.CSV, _as_csv(members))
        for table, members in by_table.items()
    ]


def _as_csv(rows: Sequence[Row]) -> bytes:
    columns = list(dict.fromkeys(key for row in rows for key in row if key != _TABLE_KEY))
    return csv_bytes(columns, ([row.get(column) for column in columns] for row in rows))


def _table_file(table: SummaryTable) -> Artefact:
    content = csv_bytes(table.columns, table.rows)
    return Artefact(f"tables/{table.name}.csv", MediaType.CSV, content)


def _table_document(table: SummaryTable) -> SummaryTableRead:
    return SummaryTableRead(
        name=table.name,
        title=table.title,
        columns=list(table.columns),
        rows=[list(row) for row in table.rows],
    )
