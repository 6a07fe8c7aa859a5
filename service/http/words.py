"""Texts of messages: counts that agree with their noun, and what a terminal may be shown."""

import unicodedata


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return "1 cell" or "3 cells"; `plural` is what an s alone does not make."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"


def visible(text: str) -> str:
    r"""Return a text with its control characters written out, such as `\x1b` for escape.

    A terminal takes them for orders, and names and messages come from others.
    """
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) == "Cc" else c for c in text
    )
