"""Machines whose clocks disagree by hours: only the database's counts."""

import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.faults]

# Moves what a process takes for the time of day; waits, by the monotonic clock, stay as they are.
# libfaketime, which does the same, makes Python's sleep fail (version 0.9.10).
SKEW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t skew(void) { return atol(getenv("SKEW_SECONDS")); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (status == 0 && clock == CLOCK_REALTIME) now->tv_sec += skew();
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now) *now = precise.tv_sec;
    return precise.tv_sec;
}
"""
HOUR = 3600
DAY = 24 * HOUR


@pytest.fixture(scope="session")
def skew_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library that shows a process another time of day."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip(
            "a process is shown another time by a library that this test compiles and preloads, "
            "which takes Linux and `cc`"
        )
    folder = tmp_path_factory.mktemp("skew")
    source, library = folder / "skew.c", folder / "skew.so"
    source.write_text(SKEW)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture
def skewed_stack(make_stack: Any, postgres_url: str, skew_library: Path) -> Any:
    """Return a stack on PostgreSQL of which every process has a clock of its own."""

    def ahead_by(seconds: int) -> dict[str, str]:
        return {"LD_PRELOAD": str(skew_library), "SKEW_SECONDS": str(seconds)}

    shown = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env=ahead_by(DAY),
        capture_output=True,
        check=True,
    )
    assert float(shown.stdout) - time.time() == pytest.approx(DAY, abs=HOUR)
    stack = make_stack(postgres_url)
    stack.start_worker("worker-1", **ahead_by(HOUR))
    stack.start_worker("worker-2", **ahead_by(-HOUR))
    stack.start_dispatcher(**ahead_by(-2 * HOUR))
    stack.start_api(**ahead_by(DAY))
    stack.wait_until_ready()
    return stack


def test_leases_last_as_long_as_they_should_and_all_times_are_the_databases(
    skewed_stack: Any, silent_job: Any
) -> None:
    began = datetime.now(UTC)
    # Each longer than a lease.
    job_ids = [skewed_stack.submit({**silent_job, "n_rows": 8000}) for _ in range(2)]
    for job_id in job_ids:
        skewed_stack.wait(job_id, "running")
    skewed_stack.busy_child().kill()
    jobs = [skewed_stack.wait(job_id) for job_id in job_ids]
    assert [job["state"] for job in jobs] == ["succeeded"] * 2
    assert sorted(job["attempt"] for job in jobs) == [1, 2]
    for job in jobs:
        times = [job[name] for name in ("created_at", "started_at", "finished_at")]
        moments = [began, *map(datetime.fromisoformat, times), datetime.now(UTC)]
        assert moments == sorted(moments)
