"""Results: the document, the edges and the artefacts that a finished job leaves.

The rows themselves are `jobs.result_records`: a job leaves them and is deleted with them.
Imports `jobs` and what is below it.
"""
