"""Files that carry an estimate into other tools; each reloads to the same numbers."""
