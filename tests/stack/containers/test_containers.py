"""The stack, run by the words of docker-compose.yml and of the Dockerfiles."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.release]

OURS = ["api", "worker", "dispatcher"]
OTHERS = ["proxy", "postgres", "redis"]
TABLE = Path(__file__).parents[3] / "worker" / "data" / "sachs.csv"
NUMERICAL = ["numpy", "torch", "scipy", "sklearn", "pandas", "celery", "matplotlib", "networkx"]
READ_ONLY = ["/", "/etc", "/usr", "/venv", "/proc/sys/kernel", "/sys", "/dev"]
WRITABLE = ["/tmp", "/dev/shm"]
UNITS = {"m": 2**20, "g": 2**30}


def new_key(stack: Any) -> str:
    """Return a key, made as the file says."""
    command = ["python", "-m", "service", "keys", "create", "first"]
    made = stack.run("migrate", *command)
    assert made.wait() == 0, made.log
    return next(line for line in made.log.splitlines() if line.startswith("vnce_"))


def test_a_job_goes_through(stack: Any) -> None:
    worker = stack.containers["worker"]
    settings = {"VNCE_URL": "http://proxy:8080", "VNCE_API_KEY": new_key(stack)}
    uploaded = worker.run("vnce", "datasets", "upload", str(TABLE), "--json", **settings)
    assert uploaded.returncode == 0, uploaded.stderr
    dataset_id = json.loads(uploaded.stdout)["id"]
    options = ["--penalty", "1", "--wait", "--json"]
    done = worker.run("vnce", "submit", dataset_id, *options, **settings)
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["convergence"]["status"] == "converged"


@pytest.mark.parametrize("name", OURS + OTHERS)
def test_a_container_has_no_privilege_and_writes_where_it_may(stack: Any, name: str) -> None:
    container = stack.containers[name]
    status = Path(f"/proc/{container.pid}/status").read_text()
    facts = dict(line.split(":\t", 1) for line in status.splitlines())
    assert {facts[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"
    assert "0" not in facts["Uid"].split()

    tries = 'for folder; do touch "$folder/x" 2>&- && echo "$folder"; done'
    written = container.run("sh", "-c", tries, "sh", *READ_ONLY, *WRITABLE)
    assert written.stdout.split() == WRITABLE


@pytest.mark.parametrize("name", OURS)
def test_what_is_ours_runs_as_the_user_of_its_image_and_keeps_its_code(
    stack: Any, name: str
) -> None:
    code = "import os, service; print(os.getuid(), os.access(service.__file__, os.W_OK))"
    ran = stack.containers[name].run("python", "-c", code)
    assert ran.stdout.split() == ["10001", "False"], ran.stderr


@pytest.mark.parametrize("name", OURS + OTHERS)
def test_limits_leave_room(stack: Any, name: str) -> None:
    # Twice what a container holds when little is asked of it: a limit below would be an outage.
    container, service = stack.containers[name], stack.services[name]
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in container.pids()]
    num_tasks = sum(int(text.split("Threads:")[1].split()[0]) for text in statuses)
    assert 2 * num_tasks <= service["pids_limit"]
    rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in container.pids()]
    held = 1024 * sum(int(text.split("Pss:")[1].split()[0]) for text in rollups)
    limit = service["mem_limit"]
    assert 2 * held <= int(limit[:-1]) * UNITS[limit[-1]]


def test_the_image_of_the_api_can_compute_nothing(stack: Any) -> None:
    code = f"from importlib.util import find_spec; print([*filter(find_spec, {NUMERICAL})])"
    assert stack.containers["api"].run("python", "-c", code).stdout == "[]\n"


def test_the_database_asks_for_the_password(stack: Any) -> None:
    refused = stack.run("migrate", "python", "-m", "service", "migrate", PGPASSWORD="another")
    assert refused.wait() != 0
    assert "password authentication failed" in refused.log


@pytest.mark.parametrize("name", OURS + OTHERS)
def test_a_service_ends_in_time_when_it_is_asked_to(stack: Any, name: str) -> None:
    # Process 1 of a container gets no signal that it does not handle.
    assert stack.restart(name) == 0


def test_the_api_is_unhealthy_while_the_database_is_away(stack: Any) -> None:
    stack.containers["postgres"].kill()
    assert stack.check("api").returncode != 0
    stack.up("postgres")
    stack.wait_until_healthy("api")


def test_no_log_holds_a_secret(stack: Any, given: dict[str, str]) -> None:
    logs = [container.log for container in stack.containers.values()]
    assert all(secret not in log for secret in given.values() for log in logs)


def test_no_worker_is_taken_for_the_superuser(stack: Any) -> None:
    # Celery warns of an account that has no name.
    assert "superuser" not in stack.containers["worker"].log
