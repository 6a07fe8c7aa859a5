"""Load by wrk, of one kind of request or of several at once, and what came of it."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("requests.lua")
# Longer than any answer may take, so that a slow one counts with its time.
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Load:
    """One kind of request over some connections, each of which waits for its answer."""

    method: str
    paths: Sequence[str]
    connections: int
    # A JSON document to send.
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answered:
    """What one kind of request met."""

    per_second: float
    p50_ms: float
    p99_ms: float
    num_answers: int
    num_4xx: int
    num_5xx: int
    # Connections that could not be made or broke, and answers that did not come in time.
    num_broken: int


def is_installed() -> bool:
    """Return whether wrk can be run."""
    return shutil.which("wrk") is not None


def run(
    url: str, loads: Mapping[str, Load], seconds: float, token: str | None = None
) -> dict[str, Answered]:
    """Put all loads on the service at once for so many seconds; return what each met."""
    with tempfile.TemporaryDirectory() as folder:
        running = {
            name: subprocess.Popen(
                _command(url, load, seconds, token, Path(folder) / name),
                stdout=subprocess.PIPE,
                text=True,
            )
            for name, load in loads.items()
        }
        outputs = {name: process.communicate()[0] for name, process in running.items()}
    return {name: _answered(output) for name, output in outputs.items()}


def _command(url: str, load: Load, seconds: float, token: str | None, stem: Path) -> list[str]:
    paths, body = stem.with_suffix(".paths"), stem.with_suffix(".json")
    paths.write_text("\n".join(load.paths))
    if load.body is not None:
        body.write_text(json.dumps(load.body))
    options = ["--threads", "1", "--connections", str(load.connections)]
    options += ["--duration", f"{seconds:g}s", "--timeout", f"{TIMEOUT_SECONDS}s"]
    arguments = [load.method, str(paths), "-" if load.body is None else str(body)]
    headers = dict(load.headers) | ({"Authorization": f"Bearer {token}"} if token else {})
    arguments += [f"{name}: {value}" for name, value in headers.items()]
    return ["wrk", *options, "--script", str(SCRIPT), url, "--", *arguments]


def _answered(output: str) -> Answered:
    """Return what the script's last line says."""
    told = json.loads(output.splitlines()[-1])
    num_answers = sum(told[f"num_{kind}"] for kind in ("2xx", "3xx", "4xx", "5xx"))
    return Answered(
        per_second=num_answers / told["seconds"],
        p50_ms=told["p50_ms"],
        p99_ms=told["p99_ms"],
        num_answers=num_answers,
        num_4xx=told["num_4xx"],
        num_5xx=told["num_5xx"],
        num_broken=told["num_broken"],
    )
