"""A process that serves the API within narrow limits."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.http.doors.door import Door, opened

SILENCE_SECONDS = 1.0
MAX_CONNECTIONS = 20


@pytest.fixture(scope="module")
def served(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """Yield the door of a process that asks for no keys and waits for nobody longer than 1 s."""
    folder = tmp_path_factory.mktemp("door")
    shutil.copyfile(sqlite_template, folder / "vnce.db")
    environment = {
        "VNCE_DATABASE_URL": f"sqlite:///{folder}/vnce.db",
        "VNCE_BROKER_URL": "redis://127.0.0.1:1/0",
        "VNCE_AUTHENTICATION": "none",
        "VNCE_SILENCE_SECONDS": str(SILENCE_SECONDS),
        "VNCE_MAX_CONNECTIONS": str(MAX_CONNECTIONS),
    }
    with opened(folder, environment) as door:
        yield door


@pytest.fixture
def door(served: Door) -> Iterator[Door]:
    """Yield the door; connections that a test has opened are closed."""
    yield served
    served.hang_up()
