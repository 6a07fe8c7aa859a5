"""Celery and its broker: how messages about jobs arrive, and what they start.

Imports `run_job` and what is below it.
"""
