"""Files of each format to columns of doubles, with every cell that is no number accounted for.

Imports `options`, `schemas` and `vocabulary` of data sets, and what these may.
"""
