"""What a request would run: the outcome of planning, stored by `submission.store`."""

from dataclasses import dataclass

from service.datasets.schemas import ColumnSummary, DatasetSummary
from service.jobs.specs import JobSpec


@dataclass(frozen=True)
class PlannedData:
    """The data set that an estimation reads."""

    dataset_id: str
    dataset_name: str
    summary: DatasetSummary
    # Those of the columns that are used.
    columns: list[ColumnSummary]


@dataclass(frozen=True)
class Plan:
    """A request that can be met, ready to be stored."""

    spec: JobSpec
    # None where the job reads no data set.
    data: PlannedData | None
    # Pairs of names that an estimate will be scored against; None if no true graph is known.
    ground_truth: list[list[str]] | None
