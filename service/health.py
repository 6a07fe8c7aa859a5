"""Whether the process is alive, whether it can serve, and which version it is."""

import importlib.metadata
import platform
from enum import StrEnum
from typing import Literal

import redis
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy.exc import SQLAlchemyError

from service import schema
from service.database import Database
from service.dependencies import DatabaseDep, SettingsDep

# Orchestrators ask every few seconds and must have their answer before they ask again.
BROKER_SECONDS = 1.0
router = APIRouter(tags=["health"])


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
    UNREACHABLE = "unreachable"


class Liveness(BaseModel):
    """The process answers."""

    status: Literal["alive"] = Field(description="Always `alive`.")


class ReadinessRead(BaseModel):
    """What the service needs, and how it fares."""

    status: Readiness = Field(
        description="`degraded`: jobs are accepted and kept, and start when the broker is back."
    )
    database: DatabaseState = Field(description="Whether it answers and has this version's tables.")
    broker: BrokerState = Field(description="Whether it answers.")


class VersionRead(BaseModel):
    """What is running."""

    version: str = Field(description="Version of VNCE.")
    python: str = Field(description="Version of Python.")


@router.get("/livez", operation_id="get_liveness")
def get_liveness() -> Liveness:
    """Say that the process answers; look at nothing else."""
    return Liveness(status="alive")


@router.get(
    "/readyz",
    operation_id="get_readiness",
    responses={503: {"model": ReadinessRead, "description": "Requests cannot be served."}},
)
def get_readiness(
    response: Response, database: DatabaseDep, settings: SettingsDep
) -> ReadinessRead:
    """Say whether requests can be served: the database decides, the broker only degrades."""
    database_state = _look_at_database(database)
    broker_state = _look_at_broker(settings.broker_url)
    if database_state is not DatabaseState.CURRENT:
        status = Readiness.UNAVAILABLE
        response.status_code = 503
    elif broker_state is not BrokerState.REACHABLE:
        status = Readiness.DEGRADED
    else:
        status = Readiness.READY
    return ReadinessRead(status=status, database=database_state, broker=broker_state)


@router.get("/v1/version", operation_id="get_version")
def get_version() -> VersionRead:
    """Say which version is running."""
    return VersionRead(version=importlib.metadata.version("vnce"), python=platform.python_version())


def _look_at_database(database: Database) -> DatabaseState:
    try:
        is_current = schema.is_current(database)
    except SQLAlchemyError:
        return DatabaseState.UNREACHABLE
    return DatabaseState.CURRENT if is_current else DatabaseState.NOT_MIGRATED


def _look_at_broker(url: str) -> BrokerState:
    try:
        with redis.Redis.from_url(
            url,
            socket_timeout=BROKER_SECONDS,
            socket_connect_timeout=BROKER_SECONDS,
            retry=Retry(NoBackoff(), retries=0),
        ) as broker:
            broker.ping()
    except redis.RedisError:
        return BrokerState.UNREACHABLE
    return BrokerState.REACHABLE
