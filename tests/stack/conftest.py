"""The texts of docker-compose.yml and of the Dockerfiles, as Docker understands them."""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
# The password needs escaping wherever it might be pasted into a URL or a command line.
GIVEN = {"POSTGRES_PASSWORD": "p@ss:w/rd %41 '$", "VNCE_KEY_SECRET": "0123456789abcdef" * 4}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def substitute(value: Any, given: Mapping[str, str]) -> Any:
    """Fill in `${NAME:-default}` and `${NAME:?message}` as Compose does."""
    if isinstance(value, dict):
        return {key: substitute(entry, given) for key, entry in value.items()}
    if isinstance(value, list):
        return [substitute(entry, given) for entry in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        name, kind, text = match.groups()
        if name in given:
            return given[name]
        if kind == ":?":
            raise KeyError(f"{name}: {text}")
        return text

    return re.sub(r"\$\{(\w+)(:-|:\?)([^}]*)\}", fill, value)


def read_compose(given: Mapping[str, str], file: Path = FILE) -> dict[str, Any]:
    """Return a compose file with its variables filled in."""
    described: dict[str, Any] = substitute(yaml.safe_load(file.read_text()), given)
    for service in described["services"].values():
        if "environment" in service:
            service["environment"] = passed_on(service["environment"], given)
    return described


def passed_on(variables: Mapping[str, str | None], given: Mapping[str, str]) -> dict[str, str]:
    """Return a container's variables; one without a value is the one given, or is left out."""
    resolved = {name: given.get(name) if text is None else text for name, text in variables.items()}
    return {name: text for name, text in resolved.items() if text is not None}


@dataclass(frozen=True)
class Dockerfile:
    """A Dockerfile's stages, each a list of instructions and their arguments."""

    stages: list[list[tuple[str, str]]]

    @classmethod
    def read(cls, file: Path) -> "Dockerfile":
        """Read the file; comments go, continued lines are joined."""
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        whole = "\n".join(lines).replace("\\\n", " ")
        stages: list[list[tuple[str, str]]] = []
        for line in filter(None, map(str.strip, whole.splitlines())):
            instruction, _, arguments = line.partition(" ")
            if instruction == "FROM":
                stages.append([])
            stages[-1].append((instruction, arguments))
        return cls(stages)

    @property
    def environment(self) -> dict[str, str]:
        """What ENV of the last stage says, on top of the base image's PATH."""
        environment = {"PATH": SYSTEM_PATH}
        for instruction, arguments in self.stages[-1]:
            if instruction == "ENV":
                for word in shlex.split(arguments):
                    name, _, text = word.partition("=")
                    environment[name] = text.replace("$PATH", environment["PATH"])
        return environment

    @property
    def user(self) -> int:
        """The user id that the last instruction names."""
        instruction, arguments = self.stages[-1][-1]
        assert instruction == "USER"
        return int(arguments.partition(":")[0])


@pytest.fixture(scope="session")
def compose() -> Callable[[Mapping[str, str]], dict[str, Any]]:
    """Return the function that reads the compose file with the variables it is given."""
    return read_compose


@pytest.fixture(scope="session")
def given() -> dict[str, str]:
    """Return the secrets that the compose file asks for."""
    return GIVEN


@pytest.fixture(scope="session")
def dockerfiles() -> dict[str, Dockerfile]:
    """Return what the Dockerfiles say, by their paths in the compose file."""
    return {
        f"docker/{name}.Dockerfile": Dockerfile.read(ROOT / "docker" / f"{name}.Dockerfile")
        for name in ("api", "worker")
    }


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    """Return where the proxy's programs are; skip where they are not installed, but not in CI."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    found = {name: shutil.which(name, path=path) for name in ("nginx", "envsubst", "curl")}
    missing = [name for name, file in found.items() if file is None]
    if missing and "CI" in os.environ:
        pytest.fail(f".ci/run should have installed {missing}")
    if missing:
        pytest.skip(f"the stack's proxy needs {missing} (Debian: nginx, gettext-base, curl)")
    return {name: file for name, file in found.items() if file is not None}
