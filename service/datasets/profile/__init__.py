"""What is said of a table that was read: its summary and its warnings.

Imports `readers`, `schemas` and `vocabulary` of data sets.
"""
