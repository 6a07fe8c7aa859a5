"""What keeps an embedded service from running; a module of its own, since it loads nothing."""


class ServeError(RuntimeError):
    """Raised when the service cannot start or cannot go on; the message says what to do."""
