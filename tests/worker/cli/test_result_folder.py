from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from worker.artefacts.result_files import MIXTURE_FILES, RESULT, file_names
from worker.cli.result_folder import say_written


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["precision.csv"], "1 file in r: precision.csv."),
        ([RESULT, "graph.csv"], "2 files in r: result.json, graph.csv."),
        (
            [RESULT, *file_names(has_truth=False)],
            f"{1 + len(file_names(has_truth=False))} files in r, among them result.json, "
            "graph.csv, figures/network.svg.",
        ),
        ([RESULT, *MIXTURE_FILES], f"6 files in r: result.json, {', '.join(MIXTURE_FILES)}."),
    ],
)
def test_few_files_are_named_and_many_counted(names: list[str], told: str) -> None:
    console = Console(file=StringIO(), width=200)
    say_written(console, Path("r"), names)
    assert console.file.getvalue().strip() == told
