"""The text of a key: `vnce_PREFIX_SECRET`.

The prefix finds the key and may be shown; the secret, of 256 random bits, proves it. Only
HMAC-SHA-256 of the secret is stored, under a key that the database does not hold, so that neither
a copy of the database nor write access to it makes a working key. A slow hash, as for passwords,
would protect nothing more: such a secret cannot be guessed.
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

_TOKEN = re.compile(r"vnce_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Token(NamedTuple):
    """A key's text in its two parts."""

    prefix: str
    secret: str

    def __str__(self) -> str:
        return f"vnce_{self.prefix}_{self.secret}"


def new_token() -> Token:
    """Return a token that nobody has."""
    return Token(secrets.token_hex(6), secrets.token_urlsafe(32))


def parse(text: str) -> Token | None:
    """Return the token that `text` is, or None."""
    match = _TOKEN.fullmatch(text)
    return match and Token(match[1], match[2])


def keyed_hash(token: Token, hash_key: str) -> str:
    """Return what is stored of a token's secret."""
    return hmac.new(hash_key.encode(), token.secret.encode(), hashlib.sha256).hexdigest()


def is_right(token: Token, stored_hash: str, hash_key: str) -> bool:
    """Return whether the token's secret is that of the stored hash, in constant time."""
    return hmac.compare_digest(keyed_hash(token, hash_key), stored_hash)
