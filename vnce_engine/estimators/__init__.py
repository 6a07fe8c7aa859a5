"""The estimators that users call, by scikit-learn's conventions.

Imports `pipeline`, `comparators` and what is below them.
"""
