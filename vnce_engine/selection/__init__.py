"""Choosing the penalty, the linear term or the graph: held-out rows, eBIC, stability.

Imports `inference` and what is below it.
"""
