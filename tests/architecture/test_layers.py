"""The dependency rule: service and engine know nothing of each other, the worker sits on top."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("service", {"torch", "scipy", "vnce_engine", "worker", "celery"}),
        ("vnce_engine", {"service", "worker", "fastapi", "celery", "sqlalchemy"}),
    ],
)
def test_a_package_loads_without(package: str, forbidden: set[str]) -> None:
    code = f"import sys, {package}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert not forbidden & set(done.stdout.split())
