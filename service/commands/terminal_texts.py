"""Texts of others on a terminal, which takes control characters for orders."""

import unicodedata


def visible(text: str) -> str:
    r"""Return a text with its control characters written out, such as `\x1b` for escape."""
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) == "Cc" else c for c in text
    )
