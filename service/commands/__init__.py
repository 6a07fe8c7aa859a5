"""What operators run: `python -m service COMMAND`, a module each."""
