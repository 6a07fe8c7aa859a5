"""What an estimate says: results, ranked edges, diagnostics, warnings and advice, imputation.

Imports `contrastive` and what is below it.
"""
