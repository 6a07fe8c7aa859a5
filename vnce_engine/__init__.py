"""Graphical models from incomplete tables by variational noise-contrastive estimation."""
