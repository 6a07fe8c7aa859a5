"""One fit of VNCE or NCE from a table to a result: choose, then estimate.

Imports `selection` and what is below it.
"""
