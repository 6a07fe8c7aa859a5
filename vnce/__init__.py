"""The command `vnce`, and the folder in which an installed wheel keeps `service` and `worker`.

Two names so plain are no top-level packages of anybody's environment: whoever imports `vnce`, which
its command and `python -m vnce.service` do, finds them here, and so do the processes they start. In
the repository, and where it is installed editable, they stand beside this folder instead.
"""

import os
import sys
from pathlib import Path

_HERE = str(Path(__file__).parent)

if _HERE not in sys.path:
    sys.path.insert(0, _HERE)
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{_HERE}{os.pathsep}{others}" if others else _HERE
    # The folder that a command is given in may have a `worker` of its own.
    os.environ["PYTHONSAFEPATH"] = "1"


def main() -> None:
    """Run the command line with the process's arguments."""
    from worker.cli import main as run  # noqa: PLC0415 - found only now

    run()
