"""The HTTP application; `create_app(settings)` builds it, nothing happens at import."""

import importlib.metadata
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline

from service import logs
from service.datasets import endpoints as datasets
from service.db.database import Database
from service.http import error_handlers, openapi_document
from service.http.head import HeadMiddleware
from service.http.openapi_responses import ANY_PROBLEM
from service.http.parameters import refuse_nul, refuse_unknown_parameters
from service.http.request_log import RequestLogMiddleware
from service.http.request_metrics import RequestMetrics
from service.http.root_path import RootPathMiddleware
from service.http.security_headers import DOCS_FILES_PATH, DOCS_PATH, SecurityHeadersMiddleware
from service.jobs import endpoints as jobs
from service.jobs import model_kinds as kinds
from service.jobs.stream_limits import StreamLimitMiddleware
from service.keys import endpoints as keys
from service.keys.gate import GateMiddleware, hash_key_of
from service.monitoring import endpoints as metrics
from service.monitoring import health, status
from service.monitoring.readiness import Probe
from service.results import endpoints as results
from service.results.quota import refuse_without_room, require_room
from service.settings import Settings

DESCRIPTION = """\
Undirected graphical models from incomplete, mostly non-negative tables.

Upload a table, submit a job, poll it, read its result. Every error is a problem document
(RFC 9457) and every answer carries `X-Request-ID`. A number that does not exist is null.

An answer with an `ETag` is sent again only if it has changed: with that tag as `If-None-Match` the
answer is 304, without a body."""

TAGS = {
    "datasets": "Tables as they were uploaded, what was read from them, and their true graphs.",
    "jobs": "Estimations, simulations, scorings and experiments: submitted, followed, cancelled.",
    "results": "What a job that has succeeded leaves: its document, its graph, its files.",
    "kinds": "Models and estimators: when to use which, and what each may be told.",
    "api-keys": "The tenant's keys; needs the scope `admin`.",
    "health": "How the service itself does, for probes, Prometheus and operators.",
}

# Requests that are worked on at a time; others wait in the order of their arrival. Threads take
# turns at the interpreter and let go of it at every query: of forty, the one with SQLite's write
# lock waited so long for its turns that submissions beside polls took 1.2 s instead of 0.3.
# Uploads and long bodies have threads of their own.
THREADS = 8

# Says in the specification what the gate does.
API_KEY = HTTPBearer(
    auto_error=False,
    scheme_name="ApiKey",
    description="An API key. A service that listens on its own machine only may ask for none.",
)


def create_app(settings: Settings) -> FastAPI:
    """Return the API on the database and limits that `settings` name.

    Raises `LookupError` if keys are required and the secret to hash them under is not given.
    """
    hash_key = hash_key_of(settings)
    database = Database(settings.database_url)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        yield
        database.dispose()

    # Its documentation page loads nothing from elsewhere.
    app = FastAPIOffline(
        docs_url=DOCS_PATH,
        redoc_url=None,
        static_url=DOCS_FILES_PATH,
        title="VNCE",
        version=importlib.metadata.version("vnce"),
        description=DESCRIPTION,
        openapi_tags=[{"name": name, "description": said} for name, said in TAGS.items()],
        responses=ANY_PROBLEM,
        # A job's specification is one class, as it is posted and as it is shown.
        separate_input_output_schemas=False,
        lifespan=lifespan,
    )
    app.state.settings = settings
    app.state.database = database
    app.state.require_room = partial(require_room, settings.max_stored_bytes)
    app.state.probe = Probe(database, settings)
    app.state.metrics = metrics.new_registry(database, settings)
    asked = [Depends(refuse_nul), Depends(refuse_unknown_parameters), Depends(API_KEY)]
    has_quota = settings.max_stored_bytes is not None
    storing = [*asked, Depends(refuse_without_room)] if has_quota else asked
    for router, dependencies in (
        (datasets.router, storing),
        (datasets.preview_router, asked),
        (jobs.router, storing),
        (jobs.validation_router, asked),
        (results.router, asked),
        (keys.router, asked),
    ):
        app.include_router(router, dependencies=dependencies)
    for router in (kinds.router, status.router, metrics.router):
        app.include_router(router, dependencies=[Depends(API_KEY)])
    # It takes no parameters and no key, and probes may add some of their own.
    app.include_router(health.router)
    # From the innermost to the outermost.
    app.add_middleware(HeadMiddleware)
    app.add_middleware(StreamLimitMiddleware, settings=settings)
    app.add_middleware(GateMiddleware, database=database, settings=settings, hash_key=hash_key)
    app.add_middleware(RequestLogMiddleware, metrics=RequestMetrics(app.state.metrics))
    error_handlers.install(app)
    openapi_document.install(app)
    app.add_middleware(SecurityHeadersMiddleware)
    app.add_middleware(RootPathMiddleware, root_path=settings.root_path)
    return app


def create_app_from_environment() -> FastAPI:
    """Return the API as `VNCE_*` variables describe it, logging JSON.

    `python -m service` serves it, with bounds that other servers may lack.
    """
    logs.configure("api")
    try:
        return create_app(Settings.from_environment())
    except LookupError as error:
        sys.exit(str(error))  # of the one setting that keys need
