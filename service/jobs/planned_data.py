"""What every estimation does with its data set first: lock it, choose columns, look at cells."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from service.datasets.readers.names import clean_name
from service.datasets.readers.refusals import MAX_ITEMS, shorten
from service.datasets.records import DatasetRecord
from service.datasets.schemas import ColumnSummary, DatasetSummary
from service.db.identifiers import is_id
from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.http.words import counted
from service.jobs.plans import PlannedData
from service.jobs.schemas import PlanWarning


def lock_dataset(session: Session, dataset_id: str) -> DatasetRecord:
    """Return the data set, kept from being deleted until the job that needs it is stored.

    Raises `ProblemError` (`not-found`) if there is none.
    """
    lock = {"read": True, "key_share": True}
    found = (
        session.get(DatasetRecord, dataset_id, with_for_update=lock) if is_id(dataset_id) else None
    )
    if found is None:
        message = "No data set has this identifier."
        raise ProblemError(
            ProblemCode.NOT_FOUND,
            message,
            errors=[ProblemItem(message=message, pointer="/dataset_id")],
        )
    return found


def planned_data(dataset: DatasetRecord, names: Collection[str]) -> PlannedData:
    """Return what a job that reads these columns of a data set is to know of it."""
    summary = DatasetSummary.model_validate(dataset.summary)
    used = set(names)
    return PlannedData(
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        summary=summary,
        columns=[column for column in summary.columns if column.name in used],
    )


def choose_columns(
    variables: list[str] | None, columns: list[ColumnSummary]
) -> tuple[list[ColumnSummary], list[ProblemItem]]:
    """Return the columns asked for, in the data set's order, and what is wrong with the names.

    Of the faults it returns the first: a short body can hold very many.
    """
    if variables is None:
        return columns, []
    known = {column.name for column in columns}
    wanted: set[str] = set()
    problems: list[ProblemItem] = []
    for position, variable in enumerate(variables):
        if len(problems) == MAX_ITEMS:
            break
        name = clean_name(variable)
        if name not in known:
            message = "The data set has no variable of this name."
        elif name in wanted:
            message = "The variable is named twice."
        else:
            wanted.add(name)
            continue
        pointer = f"/variables/{position}"
        problems.append(ProblemItem(message=message, pointer=pointer, column=shorten(variable)))
    return [column for column in columns if column.name in wanted], problems


def choose_cluster(
    cluster: str | None, variables: list[str] | None, columns: list[ColumnSummary]
) -> tuple[str | None, list[ProblemItem]]:
    """Return the column of clusters as the data set spells it, and what is wrong with it."""
    if cluster is None:
        return None, []
    name = clean_name(cluster)
    found = next((column for column in columns if column.name == name), None)
    if found is None:
        message = "The data set has no column of this name."
    elif variables is not None and name in map(clean_name, variables):
        message = "The column is among the variables; leave it out there."
    elif found.n_missing + found.n_censored + found.n_unknown > 0:
        message = "The column lacks values: each row needs one."
    elif found.is_constant:
        message = "All rows have the same value: they are one cluster."
    else:
        return name, []
    return name, [ProblemItem(message=message, pointer="/cluster", column=shorten(name))]


def refuse(reasons: list[ProblemItem]) -> None:
    """Raise `ProblemError` (`incompatible-model`) with the reasons, if there are any."""
    if reasons:
        raise ProblemError(
            ProblemCode.INCOMPATIBLE_MODEL,
            f"The job cannot run: {counted(len(reasons), 'reason')}; see `errors`.",
            errors=reasons,
        )


def upload_warnings(data: PlannedData) -> list[PlanWarning]:
    """Return those of the upload that concern the columns used."""
    names = {column.name for column in data.columns}
    return [
        PlanWarning(code=warning.code, message=warning.message, columns=warning.columns)
        for warning in data.summary.warnings
        if names.issuperset(warning.columns)
    ]


def gap_warnings(data: PlannedData, meaning: str) -> list[PlanWarning]:
    """Return what to know of missing cells, their `meaning`, and of those that hold a limit."""
    found = []
    with_gaps = [column.name for column in data.columns if column.n_missing > 0]
    if with_gaps:
        found.append(PlanWarning(code="missing-cells", message=meaning, columns=with_gaps))
    with_limits = [c.name for c in data.columns if c.n_censored + c.n_unknown > 0]
    if with_limits:
        found.append(
            PlanWarning(
                code="censored-as-missing",
                message="Cells that hold a limit are treated as missing, which biases estimates.",
                columns=with_limits,
            )
        )
    return found
