"""A folder that holds one result."""

from collections.abc import Mapping
from pathlib import Path

from worker.artefacts.result_files import MIXTURE_FILES, RESULT, file_names


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their names, such as `figures/network.svg`, below `folder`."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_result(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a whole result; what an earlier one has left there and this one lacks is removed."""
    for name in (RESULT, *file_names(has_truth=True), *MIXTURE_FILES):
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    write_files(folder, files)
