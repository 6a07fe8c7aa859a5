"""API keys: who may ask, for whom, and for what.

Imports `http` and what is below it.
"""
