"""What computed a result."""

import platform
from functools import cache
from importlib.metadata import version

from service.results.schemas import VersionsRead


@cache
def versions() -> VersionsRead:
    """Return the versions of everything that numbers depend on."""
    return VersionsRead(
        vnce=version("vnce"),
        python=platform.python_version(),
        numpy=version("numpy"),
        scipy=version("scipy"),
        torch=version("torch"),
    )
