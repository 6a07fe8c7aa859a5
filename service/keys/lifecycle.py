"""The rules of API keys: how one is made, what is shown of it, how it ends."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from service.db.clock import as_datetime
from service.db.identifiers import new_id
from service.http.pagination import Place, cursor_at
from service.http.problems import ProblemCode, ProblemError, ProblemItem
from service.http.scopes import Scope
from service.keys import repository, tokens
from service.keys.records import ApiKeyRecord
from service.keys.schemas import ApiKeyCreated, ApiKeyPage, ApiKeyRead


def create(
    session: Session,
    hash_key: str,
    *,
    name: str,
    scopes: Sequence[Scope],
    expires_at: datetime | None,
) -> ApiKeyCreated:
    """Make a key for the session's tenant and return it with its token, which is not kept.

    Raises `ProblemError` for an end that is over.
    """
    if expires_at is not None and repository.is_past(session, expires_at.timestamp()):
        message = "This time is over; name one to come, or null for a key that does not expire."
        raise ProblemError(
            ProblemCode.VALIDATION_FAILED,
            "The key would have expired already.",
            errors=[ProblemItem(message=message, pointer="/expires_at")],
        )
    token = tokens.new_token()
    record = ApiKeyRecord(
        id=new_id("key"),
        name=name,
        prefix=token.prefix,
        secret_hash=tokens.keyed_hash(token, hash_key),
        # In one order, each once.
        scopes=[scope for scope in Scope if scope in scopes],
        expires_at=None if expires_at is None else expires_at.timestamp(),
    )
    session.add(record)
    session.flush()
    session.refresh(record)  # created_at is the database's
    return ApiKeyCreated(**describe(record).model_dump(), token=str(token))


def revoke(session: Session, key_id: str) -> None:
    """Let a key work no longer; one that was revoked before stays so.

    Raises `ProblemError` if the session's tenant has no such key.
    """
    existing(session, key_id)
    repository.revoke(session, key_id)


def page(session: Session, limit: int, before: Place | None) -> ApiKeyPage:
    """Return at most `limit` keys, newest first, those before a place in the list."""
    # One more than asked for tells whether there is a next page.
    found = repository.newest(session, limit + 1, before)
    shown = found[:limit]
    last = shown[-1] if len(found) > limit else None
    return ApiKeyPage(
        items=[describe(record) for record in shown],
        next_cursor=last and cursor_at(last.created_at, last.id),
    )


def existing(session: Session, key_id: str) -> ApiKeyRecord:
    """Return the key; raises `ProblemError` if the session's tenant has none of this identifier."""
    record = repository.get(session, key_id)
    if record is None:
        raise ProblemError(ProblemCode.NOT_FOUND, "No API key has this identifier.")
    return record


def describe(record: ApiKeyRecord) -> ApiKeyRead:
    """Return what is shown of a key."""
    return ApiKeyRead(
        id=record.id,
        tenant=record.tenant,
        name=record.name,
        prefix=record.prefix,
        scopes=[Scope(scope) for scope in record.scopes],
        created_at=as_datetime(record.created_at),
        expires_at=_time(record.expires_at),
        last_used_at=_time(record.last_used_at),
        revoked_at=_time(record.revoked_at),
    )


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else as_datetime(seconds)
