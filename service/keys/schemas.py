"""API keys as requests and answers."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, Field

from service.jobs.specs.base import Label, RequestModel
from service.keys.vocabulary import Scope
from service.tenant_names import TenantName

Scopes = Annotated[
    list[Scope],
    Field(min_length=1, max_length=len(Scope), description="What the key may be used for."),
]


def end_after(days: float | None) -> datetime | None:
    """Return the time that is this many days away; None for never."""
    return None if days is None else datetime.now(UTC) + timedelta(days=days)


class ApiKeyCreate(RequestModel):
    """A key to be made for the tenant of the key that asks."""

    name: Annotated[Label, Field(description="What the key is for, 1 to 200 characters.")]
    scopes: Scopes
    expires_at: Annotated[
        AwareDatetime | None,
        Field(description="When it stops working, with its time zone; null: never."),
    ] = None


class ApiKeyRead(BaseModel):
    """A key, without its secret."""

    id: str = Field(description="Identifier of the key.")
    tenant: TenantName
    name: str = Field(description="What the key is for.")
    prefix: str = Field(description="The visible part of its token.")
    scopes: list[Scope] = Field(description="What it may be used for.")
    created_at: datetime = Field(description="When it was made, in UTC.")
    expires_at: datetime | None = Field(description="When it stops working; null: never.")
    last_used_at: datetime | None = Field(
        description="When it was last used, to the minute; null: never."
    )
    revoked_at: datetime | None = Field(description="When it was revoked; null: it was not.")


class ApiKeyCreated(ApiKeyRead):
    """A new key with its token, which is shown this once and stored nowhere."""

    token: str = Field(description="Send it as `Authorization: Bearer TOKEN`; it is secret.")


class ApiKeyPage(BaseModel):
    """Some keys, newest first."""

    items: list[ApiKeyRead] = Field(description="Newest first, revoked ones included.")
    next_cursor: str | None = Field(description="For the next page; null on the last.")
