"""Other ways to estimate the same networks, which VNCE is to be compared with.

Imports `selection` and what is below it, but no `pipeline`.
"""
