"""The table of API keys."""

from sqlalchemy import JSON, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from service.db.clock import now
from service.db.database import Record
from service.db.tenancy import OwnedRecord


class ApiKeyRecord(OwnedRecord, Record):
    """A key: everything about it but its secret, of which only a keyed hash is kept."""

    __tablename__ = "api_keys"
    __table_args__ = (Index(None, "tenant", "created_at", "id"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str]
    # The part of the token that may be seen, by which it is found.
    prefix: Mapped[str] = mapped_column(String(16), unique=True)
    secret_hash: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[float] = mapped_column(default=now())
    # None: never.
    expires_at: Mapped[float | None]
    # To within `identity.LAST_USED_SECONDS`.
    last_used_at: Mapped[float | None]
    revoked_at: Mapped[float | None]
