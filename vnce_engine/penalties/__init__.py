"""What shrinks interactions and keeps K positive definite.

Imports `data` and what is below it.
"""
