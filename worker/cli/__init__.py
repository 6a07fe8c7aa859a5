"""The command line `vnce`.

Imports all other rooms.
"""

import sys

from worker.cli.app import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line with the process's arguments."""
    app(prog_name="vnce", args=sys.argv[1:])
