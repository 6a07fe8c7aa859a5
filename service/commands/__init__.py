"""What operators run: `python -m service COMMAND`, a module each.

Imports `app` and what is below it.
"""
