"""`vnce keys`: make, list and revoke API keys."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Protocol

import typer

from service.db.tenant_names import DEFAULT_TENANT
from service.http.scopes import MEANING, Scope
from service.keys.schemas import named
from worker.cli.client import JsonObject
from worker.cli.connection import connect
from worker.cli.options import DEFAULT_LIMIT, DEFAULT_URL, Cursor, Json, Limit, Url
from worker.cli.printing import ERR, OUT, print_json, print_page, time_text

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


class Keys(Protocol):
    """A tenant's keys: those of a service over HTTP, or of a data folder."""

    def create_key(self, body: JsonObject) -> JsonObject:
        """Make a key; return it with its token."""

    def keys(self, *, limit: int, cursor: str | None) -> JsonObject:
        """Return one page of keys, newest first."""

    def revoke_key(self, key_id: str) -> None:
        """Revoke a key."""


Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        file_okay=False,
        exists=True,
        help="Access the keys in this data folder directly (needed to create the first key). "
        "Without it the service at --url is asked, with a key that has the scope admin in "
        "VNCE_API_KEY.",
        show_default="ask the service",
    ),
]
Tenant = Annotated[
    str, typer.Option(help="Whose key, with --data; over HTTP it is the tenant of VNCE_API_KEY.")
]
_MEANINGS = " ".join(f"{scope}: {meaning}." for scope, meaning in MEANING.items())


@app.command(epilog="Example: vnce keys create 'analysis scripts' --data vnce-data --days 90")
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scopes: Annotated[
        list[Scope] | None,
        typer.Option(
            "--scope",
            help=f"What it may be used for; repeatable. {_MEANINGS}",
            show_default="read and submit",
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(help="Days until it expires.", show_default="never"),
    ] = None,
    data: Data = None,
    tenant: Tenant = DEFAULT_TENANT,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
) -> None:
    """Make a key and print its token, which is shown this once and stored nowhere."""
    body = named(name, scopes, days).model_dump(mode="json")
    with _keys(data, tenant, url) as keys:
        created = keys.create_key(body)
    if as_json:
        print_json(created)
        return
    print(created["token"])
    ERR.print("This token is not shown again. Use it: export VNCE_API_KEY=...", highlight=False)


@app.command("list", epilog="Example: vnce keys list --data vnce-data --tenant soil-lab")
def list_(
    data: Data = None,
    tenant: Tenant = DEFAULT_TENANT,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    as_json: Json = False,
) -> None:
    """List a tenant's keys, newest first, revoked ones included."""
    with _keys(data, tenant, url) as keys:
        page = keys.keys(limit=limit, cursor=cursor)
    texts, times = ("id", "name", "prefix"), ("expires_at", "last_used_at", "revoked_at")

    def row(key: JsonObject) -> list[object]:
        told = [time_text(key[column]) for column in times]
        return [*(key[column] for column in texts), *told, ", ".join(key["scopes"])]

    print_page(page, (*texts, *times, "scopes"), row, as_json=as_json)


@app.command(epilog="Example: vnce keys revoke key_1f2e… --data vnce-data")
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Identifier of the key.")],
    data: Data = None,
    tenant: Tenant = DEFAULT_TENANT,
    url: Url = DEFAULT_URL,
) -> None:
    """Revoke a key; takes effect at its next request."""
    with _keys(data, tenant, url) as keys:
        keys.revoke_key(key)
    OUT.print(f"Revoked {key}.", highlight=False)


def _keys(data: Path | None, tenant: str, url: str) -> AbstractContextManager[Keys]:
    if data is not None:
        from worker.embedded.folder_keys import FolderKeys  # noqa: PLC0415 - 0.4 s for SQLAlchemy, only here

        return FolderKeys.opened(data, tenant)
    if tenant != DEFAULT_TENANT:
        raise typer.BadParameter("--tenant needs --data; over HTTP the key says whose it is")
    return connect(url)
