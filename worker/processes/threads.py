"""One thread for the numerical libraries of each process, unless an operator says otherwise."""

import os

# OpenMP (torch), OpenBLAS, MKL and Accelerate each read their own variable, once, when loaded.
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def environment(num_threads: int) -> dict[str, str]:
    """Return the variables that limit the numerical libraries of a new process."""
    return dict.fromkeys(VARIABLES, str(num_threads))


def limit(num_threads: int) -> None:
    """Limit the numerical libraries of this process; call it before they are imported."""
    os.environ.update(environment(num_threads))
