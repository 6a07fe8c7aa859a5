"""`python -m worker.processes.die_with_parent PID COMMAND...` runs a command that dies with PID.

PID is the process that starts it. On Linux the kernel kills the command as soon as that process
ends, however it ends. Elsewhere the command is only run.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>


def dying_with_parent(command: list[str]) -> list[str]:
    """Return the command line that runs `command` for as long as this process lives.

    "This process" is, to the kernel, the thread that starts the command.
    """
    return [sys.executable, "-m", "worker.processes.die_with_parent", str(os.getpid()), *command]


def main() -> None:
    """Ask the kernel for the tie, then become the command; the tie survives that."""
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
            raise OSError(ctypes.get_errno(), "the kernel refused to tie the process")
        if os.getppid() != int(parent):  # it ended before the tie was made
            sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
