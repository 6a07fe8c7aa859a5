"""`GET /metrics`, for Prometheus."""

from typing import cast

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from service.db.database import Database
from service.http.scoped_route import MetricsRoute
from service.monitoring.collector import DatabaseCollector
from service.settings import Settings

router = APIRouter(tags=["health"], route_class=MetricsRoute)


def new_registry(database: Database, settings: Settings) -> CollectorRegistry:
    """Return a registry of this process's own memory and time and of what the database knows."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(DatabaseCollector(database, settings))
    return registry


@router.get(
    "/metrics",
    operation_id="get_metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Metrics in Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
    },
)
def get_metrics(request: Request) -> Response:
    """Tell Prometheus how the service does.

    `vnce_http_*` and `process_*` are of the process that answers; everything else is read from
    the database and is the same from each.
    """
    registry = cast(CollectorRegistry, request.app.state.metrics)  # app.state is untyped
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)
