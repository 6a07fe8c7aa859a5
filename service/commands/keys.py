"""`python -m service keys create|list|revoke` manages the API keys of any tenant.

It works on the database that `VNCE_DATABASE_URL` names, with `VNCE_KEY_SECRET`: how the first
key of a service comes to be. The token of a new key is printed this once, alone on standard output.
"""

import argparse
import sys

from sqlalchemy.exc import DBAPIError

from service.db.database import Database
from service.db.tenant_names import DEFAULT_TENANT, is_tenant
from service.http.problems import ProblemError
from service.http.scopes import MEANING, Scope
from service.http.words import visible
from service.keys import lifecycle, repository
from service.keys.schemas import ApiKeyRead, named
from service.settings import Settings

_MOST_SHOWN = 1_000


def line(key: ApiKeyRead) -> str:
    """Return a key as one line of a list."""
    state = "works"
    if key.revoked_at is not None:
        state = "revoked"
    elif key.expires_at is not None:
        state = f"until {key.expires_at:%Y-%m-%d %H:%M}Z"
    used = "never used" if key.last_used_at is None else f"used {key.last_used_at:%Y-%m-%d %H:%M}Z"
    scopes, name = ",".join(key.scopes), visible(key.name)
    return f"{key.id}  {key.tenant}  {key.prefix}  {scopes}  {state}  {used}  {name}"


def main() -> None:
    """Do what the command line says."""
    arguments = _parser().parse_args()
    settings = Settings.from_environment()
    database = Database(settings.database_url)
    try:
        # Without a tenant named, keys of all of them are listed, and any may be revoked.
        handle = database.of(arguments.tenant) if arguments.tenant else database
        match arguments.command:
            case "create":
                wanted = named(arguments.name, arguments.scope, arguments.days)
                with handle.transaction() as session:
                    created = lifecycle.create(session, settings.hash_key, **dict(wanted))
                # Not before it is stored: a token that is shown works.
                print(created.token)
                print(f"This token is not shown again. {line(created)}", file=sys.stderr)
            case "list":
                with handle.snapshot() as session:
                    for record in repository.newest(session, _MOST_SHOWN, None):
                        print(line(lifecycle.describe(record)))
            case "revoke":
                with handle.transaction() as session:
                    lifecycle.revoke(session, arguments.key)
    except ProblemError as error:
        sys.exit(error.detail)
    except LookupError as error:
        sys.exit(str(error))
    except DBAPIError as error:
        sys.exit(f"The database must answer, and be migrated, for this: {error.orig}")
    finally:
        database.dispose()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m service keys", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create", help="make a key and print its token")
    create.add_argument("name", help="what the key is for")
    meanings = "; ".join(f"{scope}: {meaning}" for scope, meaning in MEANING.items())
    create.add_argument(
        "--scope",
        action="append",
        type=Scope,
        choices=list(Scope),
        help=f"what it is for, repeatable; read and submit unless told otherwise. {meanings}",
    )
    create.add_argument("--days", type=float, help="days until it expires; never by itself")
    create.add_argument(
        "--tenant", type=_tenant, default=DEFAULT_TENANT, help="whose key (default: %(default)s)"
    )
    listing = commands.add_parser("list", help="list keys, newest first")
    listing.add_argument("--tenant", type=_tenant, help="whose keys; everybody's by default")
    revoke = commands.add_parser("revoke", help="let a key work no longer")
    revoke.add_argument("key", help="identifier of the key, such as logs name it")
    revoke.set_defaults(tenant=None)
    return parser


def _tenant(text: str) -> str:
    if not is_tenant(text):
        raise argparse.ArgumentTypeError(
            "a tenant's name has lower-case letters, digits and hyphens, at most 63"
        )
    return text
