"""SQL of API keys."""

from typing import NamedTuple

from sqlalchemy import func, or_, select, tuple_, update
from sqlalchemy.orm import Session

from service.clock import now
from service.identifiers import is_id
from service.keys.records import ApiKeyRecord
from service.paging import Place


class FoundKey(NamedTuple):
    """A key and what the database's clock says about it."""

    record: ApiKeyRecord
    has_expired: bool
    # Whether its last use is to be written down again.
    is_use_old: bool


def find_by_prefix(session: Session, prefix: str, last_used_seconds: float) -> FoundKey | None:
    """Return the key of this prefix, whoever's it is, or None."""
    has_expired = func.coalesce(ApiKeyRecord.expires_at <= now(), False)
    last_used = ApiKeyRecord.last_used_at
    is_use_old = or_(last_used.is_(None), last_used < now() - last_used_seconds)
    row = session.execute(
        select(ApiKeyRecord, has_expired, is_use_old).where(ApiKeyRecord.prefix == prefix)
    ).one_or_none()
    return row and FoundKey(row[0], bool(row[1]), bool(row[2]))


def note_use(session: Session, key_id: str) -> None:
    """Write down that a key was used just now."""
    session.execute(
        update(ApiKeyRecord)
        .where(ApiKeyRecord.id == key_id)
        .values(last_used_at=now())
        .execution_options(synchronize_session=False)
    )


def get(session: Session, key_id: str) -> ApiKeyRecord | None:
    """Return the key, or None."""
    return session.get(ApiKeyRecord, key_id) if is_id(key_id) else None


def newest(session: Session, limit: int, before: Place | None) -> list[ApiKeyRecord]:
    """Return at most `limit` keys, newest first, those before the place (created_at, id)."""
    query = select(ApiKeyRecord).order_by(ApiKeyRecord.created_at.desc(), ApiKeyRecord.id.desc())
    if before is not None:
        query = query.where(tuple_(ApiKeyRecord.created_at, ApiKeyRecord.id) < before)
    return list(session.scalars(query.limit(limit)))


def is_past(session: Session, seconds: float) -> bool:
    """Return whether a time, in seconds since 1970, is over by the database's clock."""
    return bool(session.scalar(select(now() >= seconds)))


def revoke(session: Session, key_id: str) -> bool:
    """Let a key work no longer; False if there is none, or if it had been revoked before."""
    revoked = session.execute(
        update(ApiKeyRecord)
        .where(ApiKeyRecord.id == key_id, ApiKeyRecord.revoked_at.is_(None))
        .values(revoked_at=now())
        .returning(ApiKeyRecord.id)
        .execution_options(synchronize_session=False)
    )
    return revoked.one_or_none() is not None
