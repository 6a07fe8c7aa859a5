"""Texts of messages: counts that agree with their noun, and what a terminal may be shown."""

import unicodedata

# Control characters; signs that have no width, or that turn the direction of what follows; halves
# of surrogate pairs, which no terminal takes; separators of lines and of paragraphs.
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return "1 cell" or "3 cells"; `plural` is what an s alone does not make."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"


def in_clusters(num_clusters: int | None) -> str:
    """Return what to say after a number of rows; nothing where they are independent."""
    return "" if num_clusters is None else f" in {counted(num_clusters, 'cluster')}"


def visible(text: str) -> str:
    r"""Return a text with what cannot be seen in it written out, such as `\x1b` for escape.

    A terminal takes control characters for orders, other such signs let one name look like another,
    and names and messages come from others.
    """
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNSEEN else c
        for c in text
    )
