"""Whether the service works: health, readiness, status, metrics, and which workers live.

Imports `jobs` and what is below it.
"""
