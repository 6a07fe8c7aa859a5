"""The experiments of Rhodes and Gutmann (2019), each in parts that can be run anywhere.

Imports `estimators`, `simulate` and what is below them.
"""
