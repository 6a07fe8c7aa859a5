"""The HTTP application; `create_app(settings)` builds it, nothing happens at import."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service import error_handlers
from service.database import Database
from service.settings import Settings


def create_app(settings: Settings) -> FastAPI:
    """Return the API on the database and limits that `settings` name."""
    database = Database(settings.database_url)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        database.dispose()

    app = FastAPI(title="VNCE", version="1", lifespan=lifespan)
    app.state.settings = settings
    app.state.database = database
    error_handlers.install(app)
    return app
