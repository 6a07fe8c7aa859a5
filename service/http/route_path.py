"""The path that routes are matched against."""

from starlette.types import Scope


def route_path(scope: Scope) -> str:
    """Return the path of a request without the prefix under which a proxy shows the service."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    return path.removeprefix(prefix) if path.startswith(f"{prefix}/") else path
