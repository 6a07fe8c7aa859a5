import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import Result

from worker.cli.options import ESTIMATION, estimation_request

Vnce = Callable[..., Result]
COMMANDS = [
    "demo",
    "fit",
    "compare",
    "serve",
    "reproduce",
    "submit",
    "simulate",
    "score",
    "bootstrap",
    "difference",
    "wait",
    "get",
]
COMMANDS += ["jobs", "cancel", "status"]
KEY_COMMANDS = ["create", "list", "revoke"]
DATASET_COMMANDS = ["upload", "list", "show", "delete", "truth"]


def given(**chosen: object) -> dict[str, object]:
    return {**dict.fromkeys(option.name for option in ESTIMATION.options), **chosen}


def test_help_lists_every_command(vnce: Vnce) -> None:
    text = vnce("--help").output
    assert all(command in text for command in [*COMMANDS, "datasets"])
    assert "3 a result that had not converged" in " ".join(text.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *([command] for command in COMMANDS),
        *(["datasets", command] for command in DATASET_COMMANDS),
        *(["keys", command] for command in KEY_COMMANDS),
    ],
)
def test_help_of_each_command_ends_with_an_example(vnce: Vnce, command: list[str]) -> None:
    result = vnce(*command, "--help")
    assert result.exit_code == 0
    assert f"vnce {' '.join(command)}" in result.output.split("Example")[-1]


def test_the_version_is_that_of_the_package(vnce: Vnce) -> None:
    assert vnce("--version").stdout.strip() == f"vnce {version('vnce')}"


def test_help_loads_neither_torch_nor_matplotlib_nor_a_server() -> None:
    code = "import sys, worker.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    absent = {"torch", "numpy", "matplotlib", "celery", "fastapi", "sqlalchemy", "sklearn"}
    assert not loaded & absent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["--help"], 0, "Exit status"),
        (["jobs", "--url", "http://127.0.0.1:9"], 1, "No service answers"),
        (["serve"], 1, "runs on Linux and macOS"),
    ],
)
def test_a_client_needs_nothing_that_windows_lacks(
    arguments: list[str], status: int, told: str
) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('fcntl', 'resource', 'pwd', 'grp')));"
        "from worker.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert told in done.stdout + done.stderr


def test_what_was_not_chosen_is_left_to_the_service() -> None:
    assert estimation_request("dataset_1", given()) == {
        "kind": "estimation",
        "dataset_id": "dataset_1",
        "model": {"kind": "truncated-gaussian"},
        "estimator": {"kind": "vnce"},
    }


@pytest.mark.parametrize(
    ("estimator", "model"),
    [
        ("gaussian-em", "gaussian"),
        ("gaussian-score-matching", "gaussian"),
        ("mle", "truncated-gaussian"),
    ],
)
def test_an_estimator_is_of_the_model_that_it_needs(estimator: str, model: str) -> None:
    assert estimation_request("d", given(estimator=estimator))["model"] == {"kind": model}


def test_an_unknown_option_is_misuse(vnce: Vnce) -> None:
    assert vnce("jobs", "--colour").exit_code == 2


def test_no_service_at_the_address_is_a_failure_that_says_what_to_do(vnce: Vnce) -> None:
    result = vnce("jobs", "--url", "http://127.0.0.1:9")
    assert result.exit_code == 1
    assert "vnce serve" in result.output


def test_a_missing_file_is_misuse(vnce: Vnce, tmp_path: Path) -> None:
    assert vnce("fit", tmp_path / "absent.csv", "--out", tmp_path).exit_code == 2
