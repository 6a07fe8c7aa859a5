"""Whether the service can serve: what it needs, and how that fares."""

from enum import StrEnum

from pydantic import BaseModel, Field
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from service import broker, schema
from service.database import Database
from service.settings import Settings
from service.workers import presence
from service.workers.records import ProcessKind

# Orchestrators ask every few seconds and must have their answer before they ask again.
BROKER_SECONDS = 1.0


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
        description="Whether it answers; `refusing`: it does, and takes no messages, since its "
        "memory or its disk is full."
    )
    workers: int | None = Field(
        description="Processes that run jobs, one at a time each, and have told of themselves in "
        "the last 9 seconds; null while the database cannot be asked.",
        ge=0,
    )
    dispatchers: int | None = Field(
        description="Dispatchers of which the same holds; one is enough.", ge=0
    )


def look(database: Database, settings: Settings) -> ReadinessRead:
    """Return how everything fares: the database decides, all else only degrades."""
    database_state, live = _look_at_database(database)
    broker_state = _look_at_broker(settings.broker_url)
    if database_state is not DatabaseState.CURRENT:
        status = Readiness.UNAVAILABLE
    elif broker_state is BrokerState.REACHABLE and all(live.values()):
        status = Readiness.READY
    else:
        status = Readiness.DEGRADED
    return ReadinessRead(
        status=status,
        database=database_state,
        broker=broker_state,
        workers=live.get(ProcessKind.WORKER),
        dispatchers=live.get(ProcessKind.DISPATCHER),
    )


def _look_at_database(database: Database) -> tuple[DatabaseState, dict[ProcessKind, int]]:
    """Return what it is like and, if it can be asked, how many processes of each kind live."""
    try:
        if not schema.is_current(database):
            return DatabaseState.NOT_MIGRATED, {}
        with database.snapshot() as session:
            return DatabaseState.CURRENT, presence.num_live(session)
    except SQLAlchemyError:
        return DatabaseState.UNREACHABLE, {}


def _look_at_broker(url: str) -> BrokerState:
    try:
        with broker.client_of(url, BROKER_SECONDS) as client:
            is_refusing = broker.refusal(client) is not None
    except RedisError:
        return BrokerState.UNREACHABLE
    return BrokerState.REFUSING if is_refusing else BrokerState.REACHABLE
