from typing import Any

import pytest

from service.monitoring.broker import QUEUE_NAME
from worker.queue.broker import Broker

pytestmark = pytest.mark.integration


def test_it_counts_the_messages_that_wait(valkey_server: Any) -> None:
    broker = Broker(valkey_server.url)
    assert broker.num_messages() == 0
    with valkey_server.client as client:
        client.rpush(QUEUE_NAME, "one", "two")
    assert broker.num_messages() == 2


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), "maxmemory"),
        (("REPLICAOF", "127.0.0.1", "1"), "read only replica"),
        (("SET", QUEUE_NAME, "no list"), "wrong kind of value"),
        (("ACL", "SETUSER", "default", "resetkeys", "~other"), "permissions"),
    ],
    ids=["full", "a replica", "no list", "forbidden"],
)
def test_a_server_that_takes_no_messages_says_why(
    valkey_server: Any, trouble: tuple[str, ...], reason: str
) -> None:
    broker = Broker(valkey_server.url)
    assert broker.refusal() is None
    with valkey_server.client as client:
        client.execute_command(*trouble)
    said = broker.refusal()
    assert said is not None
    assert reason in said


def test_a_server_that_forbids_all_but_the_queue_takes_messages(valkey_server: Any) -> None:
    with valkey_server.client as client:
        client.execute_command("ACL", "SETUSER", "default", "resetkeys", f"~{QUEUE_NAME}")
    assert Broker(valkey_server.url).refusal() is None


def test_to_ask_a_server_changes_nothing(valkey_server: Any) -> None:
    Broker(valkey_server.url).refusal()
    with valkey_server.client as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize(("policy", "num_warnings"), [("noeviction", 0), ("allkeys-lru", 1)])
def test_a_server_that_may_drop_messages_is_warned_about(
    valkey_server: Any, caplog: pytest.LogCaptureFixture, policy: str, num_warnings: int
) -> None:
    with valkey_server.client as client:
        client.config_set("maxmemory-policy", policy)
    Broker(valkey_server.url).warn_if_broker_evicts()
    assert len(caplog.records) == num_warnings


@pytest.mark.faults
def test_a_server_that_is_away_is_not_an_error_at_the_start(valkey_server: Any) -> None:
    valkey_server.kill()
    Broker(valkey_server.url).warn_if_broker_evicts()
