"""What is done for a job of each kind, from its spec to the documents of its result.

Imports `artefacts`.
"""
