from typing import Any

import pytest

from worker.broker import Broker
from worker.celery_app import QUEUE_NAME

pytestmark = pytest.mark.integration


def test_it_counts_the_messages_that_wait(valkey_server: Any) -> None:
    broker = Broker(valkey_server.url)
    assert broker.num_messages() == 0
    with valkey_server.client as client:
        client.rpush(QUEUE_NAME, "one", "two")
    assert broker.num_messages() == 2


@pytest.mark.parametrize(("policy", "num_warnings"), [("noeviction", 0), ("allkeys-lru", 1)])
def test_a_server_that_may_drop_messages_is_warned_about(
    valkey_server: Any, caplog: pytest.LogCaptureFixture, policy: str, num_warnings: int
) -> None:
    with valkey_server.client as client:
        client.config_set("maxmemory-policy", policy)
    Broker(valkey_server.url).warn_if_forgetful()
    assert len(caplog.records) == num_warnings


@pytest.mark.faults
def test_a_server_that_is_away_is_not_an_error_at_the_start(valkey_server: Any) -> None:
    valkey_server.kill()
    Broker(valkey_server.url).warn_if_forgetful()
