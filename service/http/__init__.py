"""What all endpoints share: problems, pagination, conditional requests, bounds of connections.

Imports `db`, `settings` and `logs`.
"""
