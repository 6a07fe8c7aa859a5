"""What all endpoints share: problems, pagination, conditional requests, how it is served.

Imports `db`, `settings` and `logs`.
"""
