"""Results: the document, the edges and the artefacts that a finished job leaves.

Imports `jobs` and what is below it.
"""
