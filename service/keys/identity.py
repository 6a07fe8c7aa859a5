"""Who asks: found from the key that a request carries."""

import logging

from service.db.database import UNREACHABLE, Database
from service.http.identity import Identity
from service.http.problems import ProblemCode, ProblemError
from service.http.scopes import Scope
from service.keys import repository, tokens

# Uses of a key are written down this far apart, not at each request.
LAST_USED_SECONDS = 60.0
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="vnce"'}

logger = logging.getLogger("service")


def identify(database: Database, hash_key: str, authorization: str | None) -> Identity:
    """Return who sent this `Authorization` header.

    Raises `ProblemError` (`unauthenticated`) without a key that works. Why it does not is only
    said to whoever knows its secret.
    """
    scheme, _, text = (authorization or "").partition(" ")
    if not text:
        raise _refused("Send an API key: `Authorization: Bearer vnce_...`.")
    token = tokens.parse(text.strip()) if scheme.lower() == "bearer" else None
    if token is None:
        raise _refused("This is no API key; one is sent as `Authorization: Bearer vnce_...`.")
    with database.snapshot() as session:
        found = repository.find_by_prefix(session, token.prefix, LAST_USED_SECONDS)
    if found is None or not tokens.is_right(token, found.record.secret_hash, hash_key):
        raise _refused("This API key is not known here.")
    if found.record.revoked_at is not None:
        raise _refused("This API key was revoked.")
    if found.has_expired:
        raise _refused("This API key has expired.")
    if found.is_use_old:
        _note_use(database, found.record.id)
    scopes = frozenset(Scope(scope) for scope in found.record.scopes)
    return Identity(found.record.tenant, scopes, found.record.id)


def _note_use(database: Database, key_id: str) -> None:
    """Write down that a key was used, if it can be: a full disk keeps nobody from reading."""
    try:
        with database.transaction() as session:
            repository.note_use(session, key_id, LAST_USED_SECONDS)
    except UNREACHABLE as error:
        logger.warning("the use of key %s cannot be written down: %s", key_id, error)


def _refused(detail: str) -> ProblemError:
    return ProblemError(ProblemCode.UNAUTHENTICATED, detail, headers=_CHALLENGE)
