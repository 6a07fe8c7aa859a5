"""The API keys of an embedded service, made in its data folder: no key is needed for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL

from service.db import schema
from service.db.database import Database
from service.db.tenant_names import is_tenant
from service.http import pagination as paging
from service.http.problems import ProblemCode, ProblemError
from service.keys import lifecycle
from service.keys.schemas import ApiKeyCreate
from worker.embedded import key_secret


class FolderKeys:
    """A tenant's keys, with the methods that `Client` has for them."""

    def __init__(self, database: Database, hash_key: str) -> None:
        self._database = database
        self._hash_key = hash_key

    @classmethod
    @contextmanager
    def opened(cls, data_dir: Path, tenant: str) -> Iterator[Self]:
        """Yield the keys of a tenant in a data folder, whether the service runs or not.

        Raises `ProblemError` for a name that no tenant can have.
        """
        if not is_tenant(tenant):
            raise ProblemError(
                ProblemCode.VALIDATION_FAILED,
                f"{tenant!r} is no tenant's name: lower-case letters, digits and hyphens.",
            )
        url = URL.create("sqlite", database=str(data_dir.resolve() / "vnce.db"))
        schema.upgrade(url.render_as_string())
        database = Database(url.render_as_string())
        try:
            yield cls(database.of(tenant), key_secret.of_folder(data_dir))
        finally:
            database.dispose()

    def create_key(self, body: dict[str, Any]) -> dict[str, Any]:
        """Make a key; return it with its token."""
        wanted = ApiKeyCreate.model_validate(body)
        with self._database.transaction() as session:
            created = lifecycle.create(session, self._hash_key, **dict(wanted))
        return created.model_dump(mode="json")

    def keys(self, *, limit: int, cursor: str | None) -> dict[str, Any]:
        """Return one page of keys, newest first."""
        with self._database.snapshot() as session:
            page = lifecycle.page(session, limit, paging.place_of(cursor))
        return page.model_dump(mode="json")

    def revoke_key(self, key_id: str) -> None:
        """Let a key work no longer."""
        with self._database.transaction() as session:
            lifecycle.revoke(session, key_id)
