"""API keys as requests and answers."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field, ValidationError

from service.db.tenant_names import TenantName
from service.http.problems import ProblemCode, ProblemError
from service.http.request_model import Label, RequestModel
from service.http.scopes import Scope

# Of a key that a command makes; who wants more wants one that does not expire.
MOST_DAYS = 99_999
# Later ones have a year of five digits somewhere, or once they are rounded.
LATEST_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
Scopes = Annotated[
    list[Scope],
    Field(min_length=1, max_length=len(Scope), description="What the key may be used for."),
]


def _is_no_number(value: Any) -> Any:
    # Pydantic would take one for seconds or milliseconds since 1970, by its size.
    if isinstance(value, int | float | str) and str(value).replace(".", "").lstrip("+-").isdigit():
        raise ValueError("Must be a date and a time with its zone, as in 2030-01-31T12:00:00Z.")
    return value


class ApiKeyCreate(RequestModel):
    """A key to be made for the tenant of the key that asks."""

    name: Annotated[Label, Field(description="What the key is for, 1 to 200 characters.")]
    scopes: Scopes
    expires_at: Annotated[
        Annotated[AwareDatetime, Field(le=LATEST_END), BeforeValidator(_is_no_number)] | None,
        Field(description="When it stops working, with its time zone; null: never."),
    ] = None


def named(name: str, scopes: Sequence[Scope] | None, days: float | None) -> ApiKeyCreate:
    """Return the key that a command names: to read and submit, for ever, unless it says otherwise.

    Raises `ProblemError` for a name or a number of days that no key can have.
    """
    if days is not None and not 0 < days <= MOST_DAYS:
        raise _invalid(f"A key works for more than 0 days and at most {MOST_DAYS}.")
    try:
        return ApiKeyCreate(
            name=name,
            scopes=list(scopes or (Scope.READ, Scope.SUBMIT)),
            expires_at=None if days is None else datetime.now(UTC) + timedelta(days=days),
        )
    except ValidationError as error:
        raise _invalid("A key's name has 1 to 200 characters.") from error


def _invalid(detail: str) -> ProblemError:
    return ProblemError(ProblemCode.VALIDATION_FAILED, detail)


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
