from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from worker.cli import app

Vnce = Callable[..., Result]


@pytest.fixture
def vnce() -> Vnce:
    """Run the command line in this process."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])
