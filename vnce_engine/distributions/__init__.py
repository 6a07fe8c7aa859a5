"""Densities, their moments and samplers: the truncated Gaussian and what it is made of.

Imports `runtime`.
"""
