"""Maximising an objective of A: Newton's method, its equations, constraints and convergence.

Imports `penalties` and what is below it.
"""
