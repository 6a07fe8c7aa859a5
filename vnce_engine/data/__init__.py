"""Tables with missing cells: reading, checking, ordering and transforming them.

Imports `distributions` and what is below it.
"""
