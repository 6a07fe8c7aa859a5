"""Noise-contrastive estimation: noise, samples, the posterior of missing cells, variational EM.

Imports `optim` and what is below it.
"""
