"""The least that FastAPI can do, as a measure of the machine: `uvicorn --factory ...:create_app`.

One GET that answers a constant, one POST that validates a body and commits one row to SQLite.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

FILE_VARIABLE = "BASELINE_FILE"


class Item(BaseModel):
    """What is posted."""

    name: str


def create_app() -> FastAPI:
    """Return the app on the SQLite file that the environment names."""
    connection = sqlite3.connect(
        os.environ[FILE_VARIABLE], check_same_thread=False, isolation_level=None
    )
    for statement in (
        "PRAGMA journal_mode=WAL",
        "PRAGMA synchronous=FULL",
        "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    ):
        connection.execute(statement)
    one_writer = threading.Lock()
    app = FastAPI()

    def get_item(item_id: int) -> dict[str, Any]:
        return {"id": item_id, "name": "an item"}

    def create_item(item: Item) -> dict[str, Any]:
        with one_writer:
            made = connection.execute("INSERT INTO items (name) VALUES (?)", (item.name,))
        return {"id": made.lastrowid, "name": item.name}

    endpoints: tuple[tuple[str, str, Callable[..., Any]], ...] = (
        ("GET", "/items/{item_id}", get_item),
        ("POST", "/items", create_item),
    )
    for method, path, endpoint in endpoints:
        app.add_api_route(path, endpoint, methods=[method])
    return app
