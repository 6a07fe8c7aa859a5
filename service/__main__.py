"""`python -m service [COMMAND]` serves the API, or does what the command says; see `--help`."""

import importlib
import sys

COMMANDS = {
    "serve": "serve the API, as without a command",
    "migrate": "bring the database to the newest revision",
    "keys": "create, list and revoke API keys of any tenant",
    "expire": "delete results that are older than some days",
    "quota": "list how much each tenant has stored",
    "backup": "copy a SQLite database while the service goes on",
    "openapi": "write the OpenAPI document",
}


def main() -> None:
    """Run the command that the command line names, `serve` if it names none."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__, "", *(f"  {name:8} {what}" for name, what in COMMANDS.items()), sep="\n")
        print("\nEach has a --help of its own: python -m service serve --help")
        sys.exit(0)
    is_named = bool(arguments) and not arguments[0].startswith("-")
    name = arguments.pop(0) if is_named else "serve"
    if name not in COMMANDS:
        print(f"There is no command {name!r}; there are {', '.join(COMMANDS)}.", file=sys.stderr)
        sys.exit(2)
    sys.argv[1:] = arguments
    importlib.import_module(f"service.commands.{name}").main()


if __name__ == "__main__":
    main()
