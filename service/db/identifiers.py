"""Identifiers of stored things."""

from uuid import uuid4

MAX_LENGTH = 40


def new_id(kind: str) -> str:
    """Return a fresh identifier that says what it names, such as `job_9f…` (at most 40 characters).

    Raises nothing; 122 random bits make it unguessable and unique in practice.
    """
    return f"{kind}_{uuid4().hex}"


def is_id(text: str) -> bool:
    """Return whether `text` can be an identifier: some texts cannot even be asked for in SQL."""
    return len(text) <= MAX_LENGTH and text.isascii() and text.replace("_", "").isalnum()
