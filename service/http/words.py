"""Words of messages that agree with a number."""


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return "1 cell" or "3 cells"; `plural` is what an s alone does not make."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"
