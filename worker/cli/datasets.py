"""`vnce datasets`: upload, list, show, delete, and the graph known to be true."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from service.http.words import counted, visible
from worker.cli.client import JsonObject
from worker.cli.connection import connect
from worker.cli.options import DEFAULT_LIMIT, DEFAULT_URL, READING, Cursor, Json, Limit, Url
from worker.cli.printing import OUT, listing, one_a_kind, print_json, print_page, time_text
from worker.cli.spec_options import with_options
from worker.cli.truth_file import read_truth_file

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")

DatasetId = Annotated[str, typer.Argument(metavar="DATASET", help="Identifier of the data set.")]


@app.command(epilog="Example: vnce datasets upload assays.csv --na-value -999 --preview")
@with_options(READING)
def upload(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Table to upload.")],
    name: Annotated[str | None, typer.Option(help="Its name.", show_default="the file's")] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only say what would be read; store nothing.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Upload a table (CSV, JSON, Parquet or Arrow) and say what was read from it."""
    parameters = READING.document(given)
    if not preview:
        parameters["name"] = name or file.name
    with connect(url) as client:
        dataset = client.upload_dataset(file.read_bytes(), parameters, preview)
    if as_json:
        print_json(dataset)
        return
    if not preview:
        OUT.print(f"Stored as [bold]{dataset['id']}[/].", highlight=False)
    _print_summary(dataset["summary"])


@app.command("list", epilog="Example: vnce datasets list --limit 5")
def list_(
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
) -> None:
    """List data sets, newest first."""
    with connect(url) as client:
        page = client.datasets(limit=limit, cursor=cursor)
    columns = ("id", "name", "n_rows", "n_columns", "has_ground_truth")

    def row(dataset: JsonObject) -> list[object]:
        return [*(dataset[column] for column in columns), time_text(dataset["created_at"])]

    print_page(page, (*columns, "created_at"), row, as_json=as_json)


@app.command(epilog="Example: vnce datasets show dataset_1f2e… --json")
def show(dataset: DatasetId, url: Url = DEFAULT_URL, as_json: Json = False) -> None:
    """Say what was read from an upload, how, and what is remarkable about it."""
    with connect(url) as client:
        document = client.dataset(dataset)
    if as_json:
        print_json(document)
        return
    name = escape(visible(document["name"]))
    OUT.print(f"[bold]{name}[/] ({document['id']})", highlight=False)
    _print_summary(document["summary"])


@app.command(epilog="Example: vnce datasets delete dataset_1f2e…")
def delete(dataset: DatasetId, url: Url = DEFAULT_URL) -> None:
    """Delete a data set that no job needs any more."""
    with connect(url) as client:
        client.delete_dataset(dataset)
    OUT.print(f"Deleted {dataset}.", highlight=False)


@app.command(epilog="Example: vnce datasets truth dataset_1f2e… pathway.csv")
def truth(
    dataset: DatasetId,
    file: Annotated[
        Path | None,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="CSV with two names a line below a header, or JSON as the API takes it.",
            show_default="show what is attached",
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget the true graph.")] = False,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
) -> None:
    """Attach, show or forget the graph known to be true; later jobs are scored against it."""
    with connect(url) as client:
        if remove:
            client.detach_ground_truth(dataset)
            OUT.print(f"{dataset} has no true graph now.", highlight=False)
            return
        document = (
            client.ground_truth(dataset)
            if file is None
            else client.attach_ground_truth(dataset, read_truth_file(file))
        )
    if as_json:
        print_json(document)
        return
    OUT.print(listing(("source", "target"), document["edges"]))


def _print_summary(summary: JsonObject) -> None:
    cells = summary["n_rows"] * summary["n_columns"]
    OUT.print(
        f"{counted(summary['n_rows'], 'row')}, {counted(summary['n_columns'], 'column')}, "
        f"{summary['n_missing'] / cells:.1%} of the cells missing, "
        f"{summary['n_censored']} censored, {summary['n_unknown']} of unknown value.",
        highlight=False,
    )
    columns = ("name", "n_observed", "n_missing", "n_censored", "minimum", "mean", "maximum")
    OUT.print(listing(columns, ([c[column] for column in columns] for c in summary["columns"])))
    for heading in ("changes", "warnings"):
        for _, line in one_a_kind(summary[heading]):
            OUT.print(f"{heading[:-1]}: {line}", markup=False, highlight=False)
