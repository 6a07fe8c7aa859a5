"""Data sets: uploads, what was read from them, and the graph that is known to be true.

Imports `http`, `db`, `settings` and `logs`.
"""
