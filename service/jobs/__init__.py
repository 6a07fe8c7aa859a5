"""Jobs: submission, the lease that one worker holds, and the outbox that wakes a worker.

Imports `datasets`, `keys` and what is below them.
"""
