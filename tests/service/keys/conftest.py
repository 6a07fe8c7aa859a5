"""A client of an API that asks for keys."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from service.app import create_app
from service.settings import Settings


@pytest.fixture
def client(keyed_settings: Settings) -> Iterator[TestClient]:
    """Yield a client without a key."""
    with TestClient(create_app(keyed_settings), raise_server_exceptions=False) as opened:
        yield opened
