"""Processes: whether they live, their memory and threads, how they start, stop and wait.

Imports `settings`.
"""
