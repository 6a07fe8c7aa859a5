"""Whether something failed for want of room: on a disk, in a database, within a quota."""

import errno

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_storage_full(error: Exception) -> bool:
    """Return whether the database, or a file, has no room left to grow."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    cause = getattr(error, "orig", None)
    is_full_on_postgresql = getattr(cause, "sqlstate", None) == "53100"
    # SQLite calls it a failed write where a quota, or a limit of file sizes, is reached.
    is_at_limit = getattr(cause, "sqlite_errorname", None) == "SQLITE_IOERR_WRITE"
    return is_full_on_postgresql or is_at_limit or "database or disk is full" in str(cause)
