"""Tests of what becomes of jobs when something fails.

A package, so that the stack which its tests share ends with the last of them.
"""
