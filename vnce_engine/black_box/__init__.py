"""VNCE for any model: its log density, a family for its latents and a noise are all it needs.

Imports `contrastive` and what is below it.
"""
