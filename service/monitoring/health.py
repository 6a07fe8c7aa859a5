"""Whether the process is alive, whether it can serve, and which version it is.

All are coroutines, and answer also while all threads of requests wait for the database.
"""

import importlib.metadata
import platform
from typing import Literal, cast

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from service.monitoring.readiness import Probe, Readiness, ReadinessRead

router = APIRouter(tags=["health"])


class Liveness(BaseModel):
    """The process answers."""

    status: Literal["alive"] = Field(description="Always `alive`.")


class VersionRead(BaseModel):
    """What is running."""

    version: str = Field(description="Version of VNCE.")
    python: str = Field(description="Version of Python.")


@router.get("/livez", operation_id="get_liveness")
async def get_liveness() -> Liveness:
    """Say that the process answers; look at nothing else."""
    return Liveness(status="alive")


@router.get(
    "/readyz",
    operation_id="get_readiness",
    responses={503: {"model": ReadinessRead, "description": "Requests cannot be served."}},
)
async def get_readiness(request: Request, response: Response) -> ReadinessRead:
    """Say whether requests can be served: the database decides, all else only degrades."""
    probe = cast(Probe, request.app.state.probe)  # app.state is untyped
    seen = await probe.look()
    if seen.status is Readiness.UNAVAILABLE:
        response.status_code = 503
    return seen


@router.get("/v1/version", operation_id="get_version")
async def get_version() -> VersionRead:
    """Say which version is running."""
    return VersionRead(version=importlib.metadata.version("vnce"), python=platform.python_version())
