from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.result_files import MIXTURE_FILES, NETWORK_FILES
from worker.cli.result_folder import RESULT, say_written


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["precision.csv"], "1 file in r: precision.csv."),
        ([RESULT, "graph.csv"], "2 files in r: result.json, graph.csv."),
        (
            [RESULT, *NETWORK_FILES],
            f"{1 + len(NETWORK_FILES)} files in r, among them result.json, "
            "report.html, graph.csv, figures/network.svg.",
        ),
        (
            [RESULT, *sorted(MIXTURE_FILES)],
            f"{1 + len(MIXTURE_FILES)} files in r, among them result.json, "
            "report.html, responsibilities.csv, figures/density.svg.",
        ),
    ],
)
def test_few_files_are_named_and_many_counted(names: list[str], told: str) -> None:
    console = Console(file=StringIO(), width=200)
    say_written(console, Path("r"), names)
    assert console.file.getvalue().strip() == told
