"""The mixture of two zero-mean Gaussians of the paper's Section 4.2, its latent the component."""
