"""What endpoints ask for: the settings, who asks, and the database as far as it is theirs.

A transaction is opened in the endpoint's own body, `with database.transaction() as session:`, and
not by a dependency. Such a dependency would enter on one thread of the pool and wait there for
SQLite's write lock or a connection, while the endpoint that holds it waits for a thread: eight
waiting requests would stand still for ever. In the body, one thread does it all, and the commit
comes before the answer.

Dependencies are coroutines although nothing in them waits: FastAPI would run a plain function on a
thread of the pool, and three such hops took as long as all else that a poll does.
"""

from collections.abc import Callable
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from service.db.database import Database
from service.http.identity import Identity
from service.settings import Settings

# Raises `ProblemError` if the session's tenant may not store so many bytes more.
RequireRoom = Callable[[Session, int], None]


async def get_settings(request: Request) -> Settings:
    """Return the settings the app was created with."""
    return cast(Settings, request.app.state.settings)  # app.state is untyped


async def get_identity(request: Request) -> Identity:
    """Return who asks, as the gate has found."""
    return cast(Identity, request.state.identity)  # request.state is untyped


async def get_whole_database(request: Request) -> Database:
    """Return the app's database with everybody's rows."""
    return cast(Database, request.app.state.database)  # app.state is untyped


async def get_database(request: Request) -> Database:
    """Return the app's database with the rows of the tenant who asks."""
    return (await get_whole_database(request)).of((await get_identity(request)).tenant)


async def get_require_room(request: Request) -> RequireRoom:
    """Return what refuses to store more than a tenant may."""
    return cast(RequireRoom, request.app.state.require_room)  # app.state is untyped


SettingsDep = Annotated[Settings, Depends(get_settings)]
IdentityDep = Annotated[Identity, Depends(get_identity)]
DatabaseDep = Annotated[Database, Depends(get_database)]
WholeDatabaseDep = Annotated[Database, Depends(get_whole_database)]
RequireRoomDep = Annotated[RequireRoom, Depends(get_require_room)]
