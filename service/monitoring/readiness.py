"""Whether the service can serve: what it needs, and how that fares."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from pydantic import BaseModel, Field
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from service.db import schema
from service.db.database import Database
from service.monitoring import broker, heartbeats
from service.monitoring.records import ProcessKind
from service.settings import Settings

# Orchestrators ask every few seconds and must have their answer before they ask again.
BROKER_SECONDS = 1.0
DATABASE_SECONDS = 3.0


class Readiness(StrEnum):
    """Whether requests can be served."""

    READY = "ready"
    DEGRADED = "degraded"
    UNAVAILABLE = "unavailable"


class DatabaseState(StrEnum):
    """What the database is like."""

    CURRENT = "current"
    NOT_MIGRATED = "not-migrated"
    UNREACHABLE = "unreachable"


class BrokerState(StrEnum):
    """What the broker is like."""

    REACHABLE = "reachable"
    REFUSING = "refusing"
    UNREACHABLE = "unreachable"


class ReadinessRead(BaseModel):
    """What the service needs, and how it fares."""

    status: Readiness = Field(
        description="`degraded`: jobs are accepted and kept, and run when the broker, a dispatcher "
        "and a worker are there again. `unavailable`: requests cannot be served."
    )
    database: DatabaseState = Field(description="Whether it answers and has this version's tables.")
    broker: BrokerState = Field(
        description="Whether it answers; `refusing`: it does, and takes no messages. Mostly its "
        "memory or its disk is full; the logs of workers and dispatcher say why."
    )
    workers: int | None = Field(
        description="Live workers, which run one job at a time each: last heard of within "
        f"{heartbeats.LIVE_SECONDS:g} s; null while the database cannot be asked.",
        ge=0,
    )
    dispatchers: int | None = Field(
        description="Live dispatchers, last heard of within "
        f"{heartbeats.LIVE_SECONDS:g} s; at least one is needed.",
        ge=0,
    )


@dataclass(frozen=True)
class _DatabaseSeen:
    state: DatabaseState
    # How many processes of each kind live, if it can be asked.
    live: Mapping[ProcessKind, int] = field(default_factory=dict)


class Probe:
    """Answers an orchestrator within seconds, whatever database and broker do."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        # Threads of its own: those of requests may all wait for a database that hangs.
        self._limiter = CapacityLimiter(2)
        self._looking: asyncio.Future[_DatabaseSeen] | None = None

    async def look(self) -> ReadinessRead:
        """Return how everything fares; a database that takes its time is unreachable."""
        # All who ask meanwhile share one look: however often they do, it holds one thread.
        if self._looking is None or self._looking.done():
            looking = run_sync(_look_at_database, self._database, limiter=self._limiter)
            self._looking = asyncio.ensure_future(looking)
        asked = self._looking
        broker_state = await run_sync(
            _look_at_broker, self._settings.broker_url, limiter=self._limiter
        )
        await asyncio.wait([asked], timeout=DATABASE_SECONDS)
        seen = asked.result() if asked.done() else _DatabaseSeen(DatabaseState.UNREACHABLE)
        return _judge(seen, broker_state)


def look(database: Database, settings: Settings) -> ReadinessRead:
    """Return how everything fares, however long it takes to know."""
    return _judge(_look_at_database(database), _look_at_broker(settings.broker_url))


def _judge(database: _DatabaseSeen, broker_state: BrokerState) -> ReadinessRead:
    """Return what follows: the database decides, all else only degrades."""
    if database.state is not DatabaseState.CURRENT:
        status = Readiness.UNAVAILABLE
    elif broker_state is BrokerState.REACHABLE and all(database.live.values()):
        status = Readiness.READY
    else:
        status = Readiness.DEGRADED
    return ReadinessRead(
        status=status,
        database=database.state,
        broker=broker_state,
        workers=database.live.get(ProcessKind.WORKER),
        dispatchers=database.live.get(ProcessKind.DISPATCHER),
    )


def _look_at_database(database: Database) -> _DatabaseSeen:
    try:
        if not schema.is_current(database):
            return _DatabaseSeen(DatabaseState.NOT_MIGRATED)
        with database.snapshot() as session:
            return _DatabaseSeen(DatabaseState.CURRENT, heartbeats.num_live(session))
    except SQLAlchemyError:
        return _DatabaseSeen(DatabaseState.UNREACHABLE)


def _look_at_broker(url: str) -> BrokerState:
    try:
        with broker.client_of(url, BROKER_SECONDS) as client:
            is_refusing = broker.refusal(client) is not None
    except RedisError:
        return BrokerState.UNREACHABLE
    return BrokerState.REFUSING if is_refusing else BrokerState.REACHABLE
