"""What endpoints ask for: the settings and the database.

A transaction is opened in the endpoint's own body, `with database.transaction() as session:`, and
not by a dependency. Such a dependency would enter on one thread of the pool and wait there for
SQLite's write lock or a connection, while the endpoint that holds it waits for a thread: forty
waiting requests would stand still for ever. In the body, one thread does it all, and the commit
comes before the answer.
"""

from typing import Annotated, cast

from fastapi import Depends, Request

from service.database import Database
from service.settings import Settings


def get_settings(request: Request) -> Settings:
    """Return the settings the app was created with."""
    return cast(Settings, request.app.state.settings)  # app.state is untyped


def get_database(request: Request) -> Database:
    """Return the app's database."""
    return cast(Database, request.app.state.database)  # app.state is untyped


SettingsDep = Annotated[Settings, Depends(get_settings)]
DatabaseDep = Annotated[Database, Depends(get_database)]
