"""Celery and its broker: how messages about jobs arrive, and what they start."""
