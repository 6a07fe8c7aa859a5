"""A folder that holds one result."""

import json
from collections.abc import Mapping
from pathlib import Path

# The document itself, beside its files.
RESULT = "result.json"


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


def _files_of_an_earlier_result(folder: Path) -> set[str]:
    """Return those names that the result in `folder`, if any, lists and that lie below it."""
    try:
        names = {str(file["name"]) for file in json.loads((folder / RESULT).read_bytes())["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    root = folder.resolve()
    return {name for name in names if (root / name).resolve().is_relative_to(root)}
