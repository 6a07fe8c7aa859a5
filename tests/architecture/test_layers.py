"""The dependency rule: service and engine know nothing of each other, the worker sits on top."""

import subprocess
import sys

import pytest


def modules_after_importing(package: str) -> set[str]:
    """Return the top-level modules loaded by a fresh interpreter that imports `package`."""
    code = f"import sys, {package}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("forbidden", ["torch", "scipy", "vnce_engine", "worker", "celery"])
def test_service_loads_without(forbidden: str) -> None:
    assert forbidden not in modules_after_importing("service")


@pytest.mark.parametrize("forbidden", ["service", "worker", "fastapi", "celery", "sqlalchemy"])
def test_engine_loads_without(forbidden: str) -> None:
    assert forbidden not in modules_after_importing("vnce_engine")
