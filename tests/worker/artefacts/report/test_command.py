"""The command of a report, read by the command line, is the same job on the same reading."""

import shlex
from pathlib import Path
from typing import Any

import pydantic
import pytest
import typer.main
from typer.core import TyperGroup

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import ReadDataset, read_dataset
from service.jobs.estimation_planning import resolve
from service.jobs.specs.estimation import EstimationSpec
from service.results.bootstrap_result import BootstrapResult
from service.results.difference_result import DifferenceResult
from service.settings import Settings
from worker.artefacts.report.command import repeating_command
from worker.cli.app import app
from worker.cli.local import LOCAL
from worker.cli.options import READING, estimation_request

LIMITS = ReadLimits.from_settings(Settings())
ROWS = "".join(f"{i},{(i * 7) % 11 + 1},{(i * i) % 13 + 1}\n" for i in range(1, 40))


def read(content: bytes, **options: Any) -> ReadDataset:
    return read_dataset(content, ReadOptions.model_validate(options), LIMITS)


def parsed(command: str, file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the reading and the request that `vnce` makes of a command."""
    program, subcommand, name, *options = shlex.split(command)
    assert (program, subcommand, name) == ("vnce", "fit", file.name)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    fit = group.commands["fit"]
    params = fit.make_context("fit", [str(file), *options]).params
    # As typer does before it calls the command.
    given = {name: list(v) if isinstance(v, tuple) else v for name, v in params.items()}
    return READING.document(given), estimation_request(LOCAL, given)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "it's; a $table.csv"
    path.write_text("a,b,c d\n" + ROWS)
    return path


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"variables": ["a", "c d"], "seed": 7, "edge_threshold": 0.25, "min_observed": 3},
        {"model": {"kind": "gaussian", "transform": "rank-normal"}, "censored": "missing"},
        {"model": {"kind": "truncated-gaussian", "transform": "auto"}},
        {"estimator": {"kind": "vnce", "penalty": 0.5, "noise_ratio": 5, "noise_draws": "random"}},
        {"estimator": {"kind": "vnce", "penalties": [0.1, 1.5], "max_iter": 7, "tol": 1e-4}},
        {"estimator": {"kind": "vnce", "preset": "paper"}, "seed": 3},
        {"estimator": {"kind": "nce", "penalty_kind": "l1", "selection": "stability"}},
        {"estimator": {"kind": "nce", "imputation": "drop", "fdr_method": "benjamini-yekutieli"}},
        {"estimator": {"kind": "mle"}, "model": {"kind": "truncated-gaussian", "linear": "free"}},
        {"estimator": {"kind": "contrastive-divergence"}},
        {"estimator": {"kind": "pseudo-likelihood", "imputation": "mean"}},
        {"estimator": {"kind": "score-matching"}},
        {"estimator": {"kind": "gaussian-em"}, "model": {"kind": "gaussian"}},
        {"estimator": {"kind": "gaussian-score-matching"}, "model": {"kind": "gaussian"}},
    ],
    ids=str,
)
def test_the_command_makes_the_same_job(body: dict[str, Any], file: Path) -> None:
    summary = read(file.read_bytes()).summary
    request = EstimationSpec.model_validate({"dataset_id": LOCAL} | body)
    spec = resolve(request, summary)
    reading, repeated = parsed(repeating_command(spec, file.name, summary), file)
    assert reading == {}
    again = pydantic.TypeAdapter(EstimationSpec).validate_python(repeated)
    assert resolve(again, summary) == spec


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a,b\n" + "1,2\n3,4\n" * 9, {}),
        ("a;b\n" + "1,5;2\n3,25;-999\n5,0;7\n" * 9, {"na_values": ["-999", "x y"], "decimal": ","}),
        ("made by hand\n\na|b\n" + "1|?\n3|4\n5|7\n" * 9, {"skip_rows": 1, "na_values": ["?"]}),
        ("a\tb\nmm\tkg\n" + "1\t2\n3\t4\n" * 9, {"units_row": True, "delimiter": "tab"}),
    ],
)
def test_the_command_reads_the_file_as_it_was_read(
    text: str, options: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "table.csv"
    file.write_text(text)
    dataset = read(text.encode(), **options)
    spec = resolve(EstimationSpec(dataset_id=LOCAL), dataset.summary)
    reading, _ = parsed(repeating_command(spec, file.name, dataset.summary), file)
    again = read(text.encode(), **reading)
    assert again.table == dataset.table
    assert again.summary.changes == dataset.summary.changes


def test_what_was_done_besides_is_repeated_and_the_column_of_groups_left_out(file: Path) -> None:
    summary = read(file.read_bytes()).summary
    spec = resolve(EstimationSpec(dataset_id=LOCAL, variables=["a", "c d"]), summary)
    others = [
        BootstrapResult.model_construct(n_requested=20, stability=None),
        DifferenceResult.model_construct(by="b", n_permutations=9),
    ]
    command = repeating_command(spec, file.name, summary, others)
    assert "--resamples 20 --by b --permutations 9 --seed" in command
    assert "--variable" not in command
    parsed(command, file)


def test_without_a_summary_the_command_names_the_variables(file: Path) -> None:
    spec = resolve(EstimationSpec(dataset_id=LOCAL), read(file.read_bytes()).summary)
    command = repeating_command(spec, file.name, None)
    assert "--variable a --variable b --variable 'c d'" in command
