"""Whether the estimates are right, and the same whatever the seed."""
