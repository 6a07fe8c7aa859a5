"""API keys: who may ask, for whom, for what, and how often.

Imports `http` and what is below it.
"""
