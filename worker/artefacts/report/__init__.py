"""One page to hand on: what was found, how sure it is, and how it was made."""
