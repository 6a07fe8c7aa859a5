"""The estimators that users call, by scikit-learn's conventions.

Imports `pipeline`, `baselines` and what is below them.
"""
