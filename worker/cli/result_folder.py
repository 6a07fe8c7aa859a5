"""A folder that holds one result: its files by their own names, whoever writes them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console

from service.http.words import counted
from worker.cli.client import Client, JsonObject
from worker.cli.printing import to_json

# The document itself, beside its files.
RESULT = "result.json"
# Of many files, those that are named.
_NOTABLE = (
    RESULT,
    "report.html",
    "graph.csv",
    "figures/network.svg",
    "responsibilities.csv",
    "figures/density.svg",
    "table.csv",
)
_MOST_NAMED = 6


def fetch(
    client: Client, job_id: str, result: JsonObject, names: Iterable[str] | None = None
) -> dict[str, bytes]:
    """Return the files of a result by their names: those asked for, or all with the result."""
    wanted = [RESULT, *(file["name"] for file in result["files"])] if names is None else names
    return {
        name: to_json(result).encode() if name == RESULT else client.result_file(job_id, name)
        for name in wanted
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their names, such as `figures/network.svg`, below `folder`."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_result(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a whole result; what an earlier one has left there and this one lacks is removed."""
    for name in _files_of_an_earlier_result(folder).difference(files):
        (folder / name).unlink(missing_ok=True)
    write_files(folder, files)


def say_written(console: Console, folder: Path, files: Iterable[str]) -> None:
    """Say how many files were written, and which, or some of them where they are many."""
    names = list(files)
    shown = names if len(names) <= _MOST_NAMED else [n for n in _NOTABLE if n in names]
    among = ":" if len(shown) == len(names) else ", among them"
    text = f"{counted(len(names), 'file')} in {folder}{among} {', '.join(shown)}."
    console.print(text, markup=False, highlight=False)


def _files_of_an_earlier_result(folder: Path) -> set[str]:
    """Return those names that the result in `folder`, if any, lists and that lie below it."""
    try:
        names = {str(file["name"]) for file in json.loads((folder / RESULT).read_bytes())["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    root = folder.resolve()
    return {name for name in names if (root / name).resolve().is_relative_to(root)}
