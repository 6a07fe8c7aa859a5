"""Upload damaged files: `python -m tests.fuzz --files 20000 --seed 1`.

Every answer must be 201 or a problem that says what is wrong with the file, in bounded memory and
time. Prints how often each answer came and exits with 1 if there was another, or a slow one; the
numbers it then prints make the same files again (`mutants(seed, range(number, number + 1))`).
"""

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress

from fastapi.testclient import TestClient
from httpx2 import Response

from service.app import create_app
from service.db import schema
from service.settings import Authentication, Settings
from tests.fuzz.mutations import good_files, mutants

# The smallest that settings allow; nothing here is large.
MEMORY_BYTES = 2**28
SECONDS = 20
# What the API may grow by, whatever comes: it decodes nothing itself.
MOST_GROWTH_MIB = 64
REFUSALS = {400, 413, 415, 422}


def main() -> int:
    """Upload good files, which must be read, and then damaged ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            database_url=f"sqlite:///{folder}/fuzz.db",
            reader_memory_bytes=MEMORY_BYTES,
            reader_seconds=SECONDS,
            authentication=Authentication.NONE,
        )
        schema.upgrade(settings.database_url)
        with TestClient(create_app(settings), raise_server_exceptions=False) as client:
            for file in good_files():
                _upload(client, file.content, file.options).raise_for_status()
            numbers = range(arguments.first, arguments.first + arguments.files)
            return _fuzz(client, arguments.seed, numbers)


def _fuzz(client: TestClient, seed: int, numbers: range) -> int:
    answers: Counter[tuple[str, int, str]] = Counter()
    wrong: list[int] = []
    slowest = (0.0, -1)
    began, grown = time.monotonic(), _peak_bytes()
    with suppress(KeyboardInterrupt):  # what was found until then is told
        for mutant in mutants(seed, numbers):
            start = time.monotonic()
            answer = _upload(client, mutant.content, mutant.options)
            slowest = max(slowest, (time.monotonic() - start, mutant.number))
            code = _code(answer)
            answers[mutant.format, answer.status_code, code] += 1
            if answer.status_code not in {201, *REFUSALS} or code == "no problem":
                wrong.append(mutant.number)
                print(f"wrong: {mutant.number} {answer.status_code} {answer.text[:500]}")
    for (dataset_format, status, code), count in sorted(answers.items()):
        print(f"{dataset_format:8} {status} {code:40} {count:7}")
    grown = (_peak_bytes() - grown) // 2**20
    print(
        f"{answers.total()} files in {time.monotonic() - began:.0f} s; slowest {slowest[0]:.2f} s "
        f"(number {slowest[1]}); peak memory of this process grew by {grown} MiB; "
        f"{len(wrong)} wrong answers"
    )
    return 1 if wrong or slowest[0] > SECONDS + 5 or grown > MOST_GROWTH_MIB else 0


def _code(answer: Response) -> str:
    """Return the code of a problem, marked where a reader did not survive the file."""
    if answer.status_code == 201:
        return ""
    code = str(answer.json().get("code", "no problem"))
    return f"{code} (ended its reader)" if "ended the process" in answer.text else code


def _upload(client: TestClient, content: bytes, options: dict[str, str]) -> Response:
    return client.post("/v1/datasets", params=options, content=content)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
