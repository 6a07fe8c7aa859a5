"""Jobs: submission, the lease that one worker holds, and the outbox that wakes workers.

Imports `datasets`, `keys` and what is below them.
"""
