"""SQL of API keys."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, or_, select, tuple_, update
from sqlalchemy.orm import Session

from service.db.clock import now
from service.db.identifiers import is_id
from service.http.pagination import Place
from service.keys.records import ApiKeyRecord


class FoundKey(NamedTuple):
    """A key and what the database's clock says about it."""

    record: ApiKeyRecord
    has_expired: bool
    # Whether its last use is to be written down again.
    is_use_old: bool


def find_by_prefix(session: Session, prefix: str, last_used_seconds: float) -> FoundKey | None:
    """Return the key of this prefix, whoever's it is, or None."""
    has_expired = func.coalesce(ApiKeyRecord.expires_at <= now(), False)
    is_use_old = _is_use_old(last_used_seconds)
    row = session.execute(
        select(ApiKeyRecord, has_expired, is_use_old).where(ApiKeyRecord.prefix == prefix)
    ).one_or_none()
    return row and FoundKey(row[0], bool(row[1]), bool(row[2]))


def still_working(session: Session, key_ids: Collection[str]) -> frozenset[str]:
    """Return those of some keys that have neither expired nor been revoked."""
    ends_later = func.coalesce(ApiKeyRecord.expires_at > now(), True)
    is_good = ApiKeyRecord.id.in_(key_ids) & ApiKeyRecord.revoked_at.is_(None) & ends_later
    return frozenset(session.scalars(select(ApiKeyRecord.id).where(is_good)))


def note_use(session: Session, key_id: str, last_used_seconds: float) -> None:
    """Write down that a key was used just now, unless another request has done so meanwhile."""
    session.execute(
        update(ApiKeyRecord)
        .where(ApiKeyRecord.id == key_id, _is_use_old(last_used_seconds))
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


def revoke(session: Session, key_id: str) -> None:
    """Let a key work no longer; nothing changes if there is none, or if it was revoked before."""
    session.execute(
        update(ApiKeyRecord)
        .where(ApiKeyRecord.id == key_id, ApiKeyRecord.revoked_at.is_(None))
        .values(revoked_at=now())
        .execution_options(synchronize_session=False)
    )


def _is_use_old(last_used_seconds: float) -> ColumnElement[bool]:
    last_used = ApiKeyRecord.last_used_at
    return or_(last_used.is_(None), last_used < now() - last_used_seconds)
